// SPDX-License-Identifier: Apache-2.0

// Package cli has the parts that all commands of shipperctl share: flags and clients for a cluster, output formats, exit codes, and
// how an Application and its Releases are named and read.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Flags are those that every command has: which management cluster is meant, and which namespace in it.
type Flags struct {
	// Kubeconfig is the path of the file with the contexts; empty means $KUBECONFIG or ~/.kube/config or, where there is none
	// of them, the account of the Pod that this runs in.
	Kubeconfig string
	// Context is that of the management cluster; empty means the current one.
	Context string
	// Namespace is Shipper's or, of commands for daily work, the one that is worked in.
	Namespace string
	// Warnings is told what the API server warns of. Nil: the person in front of the screen is.
	Warnings rest.WarningHandler
}

// Register adds the flags to a command's that speak of Shipper itself: -n is its namespace.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.register(flags)
	flags.StringVarP(&f.Namespace, "namespace", "n", shipper.SystemNamespace,
		"namespace Shipper runs in, also as --shipper-system-namespace")
}

// RegisterDaily adds the flags to a command's for daily work: they are kubectl's, and -n is the namespace of what is worked
// on.
func (f *Flags) RegisterDaily(flags *pflag.FlagSet) {
	f.register(flags)
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace to work in (default that of the context)")
}

func (f *Flags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"path to the kubeconfig, also as --kube-config (default $KUBECONFIG, ~/.kube/config or the account of the Pod)")
	flags.StringVar(&f.Context, "context", "",
		"context of the management cluster, also as --management-cluster-context (default the current context)")
}

// NormalizeFlag accepts the flags by their names in the documentation of the original and in its code, beside kubectl's.
func NormalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "kube-config":
		name = "kubeconfig"
	case "management-cluster-context":
		name = "context"
	case "shipper-system-namespace":
		name = "namespace"
	case "decommissionedClusters":
		name = "decommissioned-clusters"
	case "dryrun":
		name = "dry-run"
	case "filename", "appFile":
		name = "file"
	case "appName":
		name = "app-name"
	}
	return pflag.NormalizedName(name)
}

// NeedsCommand refuses a command that only has sub-commands, so that a misspelt one does not pass for success.
func NeedsCommand(cmd *cobra.Command, _ []string) error {
	return WithCode(Misused, fmt.Errorf("%s needs one of its commands: see %s --help", cmd.CommandPath(), cmd.CommandPath()))
}
