// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/fleet"
)

// options are the parsed flags.
type options struct {
	kubeconfig      string
	namespace       string
	blocksNamespace string
	// sharedChecks is the namespace with the Checks that all namespaces share.
	sharedChecks string

	leaderElect             bool
	identity                string
	healthAddr, metricsAddr string
	pprofPort               int

	workers         int
	unhealthyAfter  time.Duration
	selectByRelease bool
	chartCacheDir   string
	// repositories is the parsed chartRepositories.
	repositories      outward.Policy
	chartRepositories string
	// outgoing is the parsed outgoingURLs; nil when there are none.
	outgoing     *outward.Policy
	outgoingURLs string
	// placeable is the parsed placement.
	placeable objects.Policy
	placement objects.PolicyOptions

	logLevel  int
	logFormat string
}

// parse parses the flags and refuses invalid ones.
func parse(args []string) (*options, error) {
	o := &options{}
	set := flag.NewFlagSet("shipper-reconciler", flag.ContinueOnError)
	set.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`file` with the management cluster; empty: $KUBECONFIG, the cluster this runs in")
	set.StringVar(&o.namespace, "namespace", shipper.SystemNamespace,
		"`namespace` of Shipper: the Secrets of clusters, and the Lease of the leader")
	set.StringVar(&o.blocksNamespace, "rollout-blocks-global-namespace", shipper.GlobalBlocksNamespace,
		"`namespace` whose RolloutBlocks stop rollouts in all namespaces")
	set.StringVar(&o.sharedChecks, "shared-checks-namespace", check.SharedNamespace,
		"`namespace` whose Checks the strategies of all namespaces may name; empty: none")
	set.BoolVar(&o.leaderElect, "leader-elect", true, "work only while no other reconciler of this namespace does")
	set.StringVar(&o.identity, "identity", "",
		"`name` by which this process takes its Lease back after it was killed, its Pod's; it must be unique; empty: a random one")
	set.StringVar(&o.healthAddr, "health-addr", ":8083", "`address` of /healthz and /readyz; 0 serves neither")
	set.StringVar(&o.metricsAddr, "metrics-addr", ":8082", "`address` of /metrics; 0 serves none")
	set.IntVar(&o.pprofPort, "pprof-port", 0,
		"`port` of 127.0.0.1 for /debug/pprof/, through which any process in this container can read all memory; 0 serves none")
	set.IntVar(&o.workers, "workers", 8,
		"how many objects of each kind are worked on at the same time, and how many passes are made at the same time in each cluster")
	set.DurationVar(&o.unhealthyAfter, "unhealthy-after", placement.DefaultUnhealthyAfter,
		"`time` that a cluster may be not ready and still be chosen by placements, from 30s to 24h. The webhook needs the same")
	set.BoolVar(&o.selectByRelease, "select-by-release", true,
		"select all Pods of a Release in the Service of its Application while no other Release has traffic; false: always select Pods by "+
			"the label shipper-traffic-status, as the original Shipper does")
	set.StringVar(&o.chartCacheDir, "chart-cache-dir", filepath.Join(os.TempDir(), "shipper-reconciler-charts"),
		"`folder` for what is known of chart repositories")
	set.StringVar(&o.chartRepositories, "chart-repositories", outward.AnyHTTPS,
		"comma-separated `URLs` that charts may be fetched from, with all below them; a host may be * or begin with *., a port be *")
	set.StringVar(&o.outgoingURLs, "outgoing-urls", "",
		"comma-separated `URLs` that Notifications may be sent to and Checks may ask, with all below them, as for --chart-repositories; "+
			"empty: none")
	o.placement.AddFlags(set)
	set.IntVar(&o.logLevel, "log-level", 0, "0: what people want to know; 1: every change; 2: more")
	set.StringVar(&o.logFormat, "log-format", "json", "json or text")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.repositories, o.outgoing, err = outward.ParsePolicies(o.chartRepositories, o.outgoingURLs); err != nil {
		return nil, err
	}
	if o.placeable, err = objects.ParsePolicy(o.placement, o.namespace, o.blocksNamespace, o.sharedChecks); err != nil {
		return nil, err
	}
	unhealthyErr := placement.CheckUnhealthyAfter(o.unhealthyAfter)
	switch {
	case set.NArg() > 0:
		return nil, fmt.Errorf("unexpected arguments: %s", strings.Join(set.Args(), " "))
	case unhealthyErr != nil:
		return nil, unhealthyErr
	case o.workers < 1:
		return nil, fmt.Errorf("--workers=%d: at least 1 is needed", o.workers)
	case o.pprofPort < 0 || o.pprofPort > 65535:
		return nil, fmt.Errorf("--pprof-port=%d: the port must be a number from 1 to 65535, or 0", o.pprofPort)
	case o.logFormat != "json" && o.logFormat != "text":
		return nil, fmt.Errorf("--log-format=%s: use json or text", o.logFormat)
	}
	return o, nil
}

// restConfig sets no client-side rate limit: the API server has one.
func (o *options) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = fleet.UserAgent
	return config, nil
}

// pprofAddr is the address for profiles; "" for none. Other machines cannot reach it.
func (o *options) pprofAddr() string {
	if o.pprofPort == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.pprofPort))
}

func (o *options) logging() []zap.Opts {
	opts := []zap.Opts{zap.Level(zapcore.Level(-o.logLevel)), zap.StacktraceLevel(zapcore.PanicLevel)}
	if o.logFormat == "text" {
		return append(opts, zap.ConsoleEncoder())
	}
	return append(opts, zap.JSONEncoder())
}
