// SPDX-License-Identifier: Apache-2.0

// Package cli has the parts that all commands of shipperctl share: flags and clients for a cluster, output formats, exit codes, and
// how an Application and its Releases are named and read.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Flags name the management cluster and a namespace in it. Every command has them.
type Flags struct {
	// Kubeconfig is the path of the file with the contexts; empty means $KUBECONFIG or ~/.kube/config or, without either, the
	// account of the Pod that shipperctl runs in.
	Kubeconfig string
	// Context is that of the management cluster; empty means the current one.
	Context string
	// As and AsGroups are whom the management cluster is asked as; empty is the user of the context.
	As       string
	AsGroups []string
	// Namespace is the one that Shipper runs in or, after RegisterDaily, the one that users work in.
	Namespace string
	// Warnings handles the API server's warnings; nil prints them to standard error.
	Warnings rest.WarningHandler
}

// Register adds the flags to a command about Shipper itself: -n is the namespace that Shipper runs in.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.register(flags, shipper.SystemNamespace, "namespace Shipper runs in, also as --shipper-system-namespace")
}

// RegisterDaily adds the flags to a command for daily work: -n is the namespace of the objects, as for kubectl.
func (f *Flags) RegisterDaily(flags *pflag.FlagSet) {
	f.register(flags, "", "namespace to work in (default that of the context)")
}

func (f *Flags) register(flags *pflag.FlagSet, namespace, usage string) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"path to the kubeconfig, also as --kube-config (default $KUBECONFIG, ~/.kube/config or the account of the Pod)")
	flags.StringVar(&f.Context, "context", "",
		"context of the management cluster, also as --management-cluster-context (default the current context)")
	flags.StringVar(&f.As, "as", "", "user to act as in the management cluster, which needs the right to impersonate, as for kubectl")
	flags.StringArrayVar(&f.AsGroups, "as-group", nil, "group to act as in the management cluster, with --as; may be repeated")
	flags.StringVarP(&f.Namespace, "namespace", "n", namespace, usage)
}

func (f *Flags) loader(context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	overrides.Context.Namespace = f.Namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// synonyms are the names of flags in the original's documentation and code, and kubectl's, for those that shipperctl has.
var synonyms = map[string]string{
	"kube-config": "kubeconfig", "management-cluster-context": "context", "shipper-system-namespace": "namespace",
	"decommissionedClusters": "decommissioned-clusters", "dryrun": "dry-run", "cluster": "clusters",
	"filename": "file", "appFile": "file", "appName": "app-name",
}

// NormalizeFlag accepts flags by their synonyms.
func NormalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(cmp.Or(synonyms[name], name))
}

// Group returns a command that only has sub-commands. Without one it is refused: a misspelt sub-command must not pass for success.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return WithCode(Misused, fmt.Errorf("%s needs one of its commands: see %s --help", cmd.CommandPath(), cmd.CommandPath()))
		},
	}
	group.AddCommand(commands...)
	return group
}

// Management returns the configuration of a client of the management cluster.
func (f *Flags) Management() (*rest.Config, error) {
	if f.As == "" && len(f.AsGroups) > 0 {
		return nil, WithCode(Misused, errors.New("--as-group needs --as as well"))
	}
	config, err := f.Config(f.Context)
	if err == nil && f.As != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: f.As, Groups: f.AsGroups}
	}
	return config, err
}

// Config returns the configuration of a client of a context's cluster; empty means the current context or, in a Pod without a
// kubeconfig, the cluster that the Pod runs in.
func (f *Flags) Config(context string) (*rest.Config, error) {
	loader := f.loader(context)
	raw, err := loader.RawConfig()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	case clientcmdapi.IsConfigEmpty(&raw) && context == "" && f.Kubeconfig == "":
		config, err := InCluster()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("there is no kubeconfig in %s: name one with --kubeconfig or in $KUBECONFIG",
				strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "))
		}
		return f.withWarnings(config), err
	case context != "" && raw.Contexts[context] == nil:
		have := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, fmt.Errorf("there is no context %q in the kubeconfig, only: %s; name the right one in clusters.yaml "+
			"under `context` or in the flag --context, or choose another file with --kubeconfig", context,
			cmp.Or(strings.Join(have, ", "), "none"))
	case context == "" && raw.CurrentContext == "":
		return nil, errors.New("the kubeconfig has no current context: run `kubectl config use-context`, or name one with --context")
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %q of the kubeconfig: %w", cmp.Or(context, raw.CurrentContext), err)
	}
	return f.withWarnings(withUserAgent(config)), nil
}

func (f *Flags) withWarnings(config *rest.Config) *rest.Config {
	if f.Warnings != nil && config != nil {
		config.WarningHandler = f.Warnings
	}
	return config
}

// InCluster returns the configuration of a client of the cluster that this Pod runs in.
func InCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the account of this Pod: %w", err)
	}
	return withUserAgent(config), nil
}

// withUserAgent names shipperctl to the API server, leaves limits to API Priority and Fairness, and prints warnings.
func withUserAgent(config *rest.Config) *rest.Config {
	config.UserAgent = "shipperctl"
	config.QPS = -1
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return config
}

// Client returns a client of the management cluster for Shipper's kinds, and the namespace of the flags, the context or the Pod.
func (f *Flags) Client() (client.WithWatch, string, error) {
	c, err := f.ClientFor(shipper.AddToScheme)
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := f.loader(f.Context).Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("reading the namespace of the context: %w", err)
	}
	return c, namespace, nil
}

// ClientFor returns a client of the management cluster for the kinds that are added to its scheme.
func (f *Flags) ClientFor(addToScheme ...func(*runtime.Scheme) error) (client.WithWatch, error) {
	config, err := f.Management()
	if err != nil {
		return nil, err
	}
	return NewClient(config, addToScheme...)
}

// NewClient returns a client of a cluster for the kinds that are added to its scheme.
func NewClient(config *rest.Config, addToScheme ...func(*runtime.Scheme) error) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range addToScheme {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return c, nil
}
