// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig finds clusters by the names of contexts.
type kubeconfig struct {
	rules *clientcmd.ClientConfigLoadingRules
}

// kube returns the kubeconfig that the flags ask for.
func (o *options) kube() kubeconfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return kubeconfig{rules: rules}
}

// config returns how to reach the cluster of a context; empty means the current context.
func (k kubeconfig) config(context string) (*rest.Config, error) {
	raw, err := k.rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if context != "" && raw.Contexts[context] == nil {
		have := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, fmt.Errorf("there is no context %q in the kubeconfig, only: %s; name the right one in clusters.yaml "+
			"under `context` or in the flag, or choose another file with --kube-config", context, strings.Join(have, ", "))
	}
	if context == "" && raw.CurrentContext == "" {
		return nil, fmt.Errorf("the kubeconfig has no current context: run `kubectl config use-context`, " +
			"or name one with --management-cluster-context")
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, overrides, k.rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %q of the kubeconfig: %w", context, err)
	}
	config.UserAgent = "shipperctl"
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}
