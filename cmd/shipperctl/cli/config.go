// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// podNamespace is the file that tells a Pod its namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Management returns how to reach the management cluster.
func (f *Flags) Management() (*rest.Config, error) { return f.Config(f.Context) }

// Config returns how to reach the cluster of a context; empty means the current context or, in a Pod without a kubeconfig,
// the cluster that it runs in.
func (f *Flags) Config(context string) (*rest.Config, error) {
	rules, raw, err := f.load()
	if err != nil {
		return nil, err
	}
	switch {
	case clientcmdapi.IsConfigEmpty(raw) && context == "" && f.Kubeconfig == "":
		config, err := InCluster()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("there is no kubeconfig in %s: name one with --kubeconfig or in $KUBECONFIG",
				strings.Join(rules.GetLoadingPrecedence(), ", "))
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
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, overrides, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %q of the kubeconfig: %w", cmp.Or(context, raw.CurrentContext), err)
	}
	return f.withWarnings(withUserAgent(config)), nil
}

// Client returns a client of the management cluster for Shipper's kinds, and the namespace that is meant.
func (f *Flags) Client() (client.WithWatch, string, error) {
	config, err := f.Management()
	if err != nil {
		return nil, "", err
	}
	namespace := f.Namespace
	if namespace == "" {
		if namespace, err = f.defaultNamespace(); err != nil {
			return nil, "", err
		}
	}
	c, err := NewClient(config, shipper.AddToScheme)
	return c, namespace, err
}

// NewClient returns a client of the management cluster for the kinds that are added to its scheme.
func NewClient(config *rest.Config, addToScheme ...func(*runtime.Scheme) error) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range addToScheme {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return c, nil
}

// load reads the kubeconfig, which is empty when there is none.
func (f *Flags) load() (*clientcmd.ClientConfigLoadingRules, *clientcmdapi.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return rules, raw, nil
}

// defaultNamespace is that of the context or of the Pod, as kubectl has it.
func (f *Flags) defaultNamespace() (string, error) {
	rules, raw, err := f.load()
	if err != nil {
		return "", err
	}
	if clientcmdapi.IsConfigEmpty(raw) {
		if own, err := os.ReadFile(podNamespace); err == nil {
			return strings.TrimSpace(string(own)), nil
		}
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	namespace, _, err := clientcmd.NewNonInteractiveClientConfig(*raw, f.Context, overrides, rules).Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the context: %w", err)
	}
	return namespace, nil
}

// InCluster returns how a Pod reaches the cluster that it runs in.
func InCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the account of this Pod: %w", err)
	}
	return withUserAgent(config), nil
}

// withUserAgent tells the API server who asks, leaves it to the API server how much at once is fair, and shows its warnings to the
// person in front of the screen.
func withUserAgent(config *rest.Config) *rest.Config {
	config.UserAgent = "shipperctl"
	config.QPS = -1
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return config
}

// withWarnings has warnings told to whom the flags name.
func (f *Flags) withWarnings(config *rest.Config) *rest.Config {
	if f.Warnings != nil && config != nil {
		config.WarningHandler = f.Warnings
	}
	return config
}
