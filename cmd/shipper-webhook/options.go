// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/outward"
)

// Names that are the same in every installation.
const (
	serviceName       = "shipper-webhook"
	certificateSecret = "shipper-webhook-cert"
	configurations    = shipper.GroupName // name of both webhook configurations
)

// options are the parsed flags.
type options struct {
	kubeconfig      string
	namespace       string
	blocksNamespace string
	reconcilerUser  string

	addr, healthAddr, metricsAddr string
	pprofPort                     int

	clientCAFile, clientNames string

	certs         string
	certDir       string
	lifetimes     certs.Lifetimes
	dnsNames      string
	extraDNSNames string

	chartCacheDir string
	shutdownDelay time.Duration
	// repositories is the parsed chartRepositories, outgoing the parsed outgoingURLs: nil when they are empty.
	repositories      outward.Policy
	outgoing          *outward.Policy
	chartRepositories string
	outgoingURLs      string

	sharedChecksNamespace string
	unhealthyAfter        time.Duration

	// placeable is the parsed form of placeableOptions.
	placeable        objects.Policy
	placeableOptions objects.PolicyOptions

	logLevel  int
	logFormat string
}

// parse parses the flags and refuses invalid ones.
func parse(args []string) (*options, error) {
	o := &options{}
	set := flag.NewFlagSet("shipper-webhook", flag.ContinueOnError)
	set.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`file` with the management cluster; empty: $KUBECONFIG, the cluster this runs in")
	set.StringVar(&o.namespace, "namespace", shipper.SystemNamespace,
		"`namespace` of Shipper: its Service and its certificate's Secret")
	set.StringVar(&o.blocksNamespace, "rollout-blocks-global-namespace", shipper.GlobalBlocksNamespace,
		"`namespace` whose RolloutBlocks stop rollouts in all namespaces")
	set.StringVar(&o.reconcilerUser, "reconciler-user", "",
		"`user` name of Shipper's reconciler (default that of service account "+shipper.ManagementServiceAccount+")")
	set.StringVar(&o.addr, "addr", ":9443", "`address` to serve admission on")
	set.StringVar(&o.healthAddr, "health-addr", ":8081", "`address` of /healthz and /readyz; 0 serves neither")
	set.StringVar(&o.metricsAddr, "metrics-addr", ":8080", "`address` of /metrics; 0 serves none")
	set.IntVar(&o.pprofPort, "pprof-port", 0,
		"`port` of 127.0.0.1 for /debug/pprof/, through which any process in this container can read all memory; 0 serves none")
	set.StringVar(&o.clientCAFile, "client-ca-file", "",
		"`file` with the authorities of permitted clients, read again when it changes; empty: any client may ask")
	set.StringVar(&o.clientNames, "client-names", "",
		"comma-separated common `names`, one of which their certificate must have; empty: any")
	set.StringVar(&o.certs, "certs", string(certs.Self), "who makes certificates: self, cert-manager or files")
	set.StringVar(&o.certDir, "cert-dir", "", "`folder` with tls.crt and tls.key, with --certs=files")
	set.StringVar(&o.dnsNames, "dns-names", "",
		"comma-separated `names` of the certificate, with --certs=self (default those of the Service "+serviceName+")")
	set.StringVar(&o.extraDNSNames, "extra-dns-names", "", "comma-separated `names` beside those, such as localhost")
	set.DurationVar(&o.lifetimes.Certificate, "certificate-lifetime", certs.DefaultCertificateLifetime,
		"`time` a certificate is good for, with --certs=self; it is renewed when a third is left")
	set.DurationVar(&o.lifetimes.Authority, "authority-lifetime", certs.DefaultAuthorityLifetime,
		"`time` the CA is good for, with --certs=self; another takes over when a third is left")
	set.StringVar(&o.chartCacheDir, "chart-cache-dir", filepath.Join(os.TempDir(), "shipper-webhook-charts"),
		"`folder` for files that are made again when they are lost; the only one that is written to")
	set.DurationVar(&o.shutdownDelay, "shutdown-delay", 6*time.Second,
		"`time` between failing /readyz and taking no more requests; in its second half "+
			"connections are asked to go elsewhere")
	o.addURLs(set)
	set.DurationVar(&o.unhealthyAfter, "unhealthy-after", placement.DefaultUnhealthyAfter,
		"`time` that a cluster may be not ready and still be chosen by placements, from 30s to 24h. The reconciler needs the same")
	o.placeableOptions.AddFlags(set)
	set.IntVar(&o.logLevel, "log-level", 0, "0: refusals and what people want to know; 1: every request; 2: more")
	set.StringVar(&o.logFormat, "log-format", "json", "json or text")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected arguments: %s", strings.Join(set.Args(), " "))
	}
	return o, o.complete()
}

// addURLs adds the flags about servers that users name, and about Checks.
func (o *options) addURLs(set *flag.FlagSet) {
	set.StringVar(&o.chartRepositories, "chart-repositories", outward.AnyHTTPS,
		"comma-separated `URLs` that charts may be fetched from, with all below them; a host may be * or begin with *., a port be *")
	set.StringVar(&o.outgoingURLs, "outgoing-urls", "",
		"comma-separated `URLs` that Checks and Clusters may name, with all below them, as for --chart-repositories; empty: none. "+
			"The reconciler needs the same list")
	set.StringVar(&o.sharedChecksNamespace, "shared-checks-namespace", check.SharedNamespace,
		"`namespace` whose Checks may be named in all namespaces; empty: none")
}

// complete sets the defaults that depend on other flags, and validates.
func (o *options) complete() error {
	if o.reconcilerUser == "" {
		o.reconcilerUser = "system:serviceaccount:" + o.namespace + ":" + shipper.ManagementServiceAccount
	}
	if o.dnsNames == "" {
		service := serviceName + "." + o.namespace + ".svc"
		o.dnsNames = service + "," + service + ".cluster.local"
	}
	_, _, addrErr := o.listen()
	var policyErr error
	o.repositories, o.outgoing, policyErr = outward.ParsePolicies(o.chartRepositories, o.outgoingURLs)
	var placeableErr error
	o.placeable, placeableErr = objects.ParsePolicy(o.placeableOptions, o.namespace, o.blocksNamespace, o.sharedChecksNamespace)
	lifetimesErr := o.lifetimes.Validate()
	unhealthyErr := placement.CheckUnhealthyAfter(o.unhealthyAfter)
	switch mode := certs.Mode(o.certs); {
	case addrErr != nil:
		return addrErr
	case mode != certs.Self && mode != certs.CertManager && mode != certs.Files:
		return fmt.Errorf("--certs=%s: use self, cert-manager or files", o.certs)
	case o.clientNames != "" && o.clientCAFile == "":
		return errors.New("--client-names needs --client-ca-file")
	case mode == certs.Files && o.certDir == "":
		return errors.New("--certs=files needs --cert-dir")
	case policyErr != nil:
		return policyErr
	case placeableErr != nil:
		return placeableErr
	case lifetimesErr != nil:
		return fmt.Errorf("--certificate-lifetime and --authority-lifetime: %w", lifetimesErr)
	case unhealthyErr != nil:
		return unhealthyErr
	case o.pprofPort < 0 || o.pprofPort > 65535:
		return fmt.Errorf("--pprof-port=%d: the port must be a number from 1 to 65535, or 0", o.pprofPort)
	case o.logFormat != "json" && o.logFormat != "text":
		return fmt.Errorf("--log-format=%s: use json or text", o.logFormat)
	case o.shutdownDelay < 0:
		return errors.New("--shutdown-delay must not be negative")
	}
	return nil
}

// listen splits the address to serve on.
func (o *options) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.addr)
	if err != nil {
		return "", 0, fmt.Errorf("--addr=%s: %w", o.addr, err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--addr=%s: the port must be a number from 1 to 65535", o.addr)
	}
	return host, port, nil
}

// pprofAddr is the address for profiles; "" for none. Other machines cannot reach it.
func (o *options) pprofAddr() string {
	if o.pprofPort == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.pprofPort))
}

// clients authenticates callers; nil admits all of them.
func (o *options) clients() (*certs.Clients, error) {
	if o.clientCAFile == "" {
		return nil, nil
	}
	return certs.NewClients(o.clientCAFile, split(o.clientNames))
}

func (o *options) names() []string { return split(o.dnsNames + "," + o.extraDNSNames) }

// split splits at commas and removes blanks.
func split(list string) []string {
	var names []string
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (o *options) certOptions() certs.Options {
	return certs.Options{
		Mode:           certs.Mode(o.certs),
		Secret:         types.NamespacedName{Namespace: o.namespace, Name: certificateSecret},
		Dir:            o.certDir,
		DNSNames:       o.names(),
		Lifetimes:      o.lifetimes,
		Configurations: configurations,
	}
}

// restConfig sets no client-side rate limit: the API server has one, and requests are few.
func (o *options) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "shipper-webhook"
	return config, nil
}

func (o *options) logging() []zap.Opts {
	opts := []zap.Opts{zap.Level(zapcore.Level(-o.logLevel)), zap.StacktraceLevel(zapcore.PanicLevel)}
	if o.logFormat == "text" {
		return append(opts, zap.ConsoleEncoder())
	}
	return append(opts, zap.JSONEncoder())
}
