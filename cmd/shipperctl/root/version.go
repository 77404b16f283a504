// SPDX-License-Identifier: Apache-2.0

package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newVersion() *cobra.Command {
	o := &cli.Flags{}
	var server bool
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of shipperctl, and with --server that of the management cluster's Kubernetes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			found := Versions{Client: builtFrom(info)}
			var failed error
			if server {
				found.Server, failed = readServer(cmd.Context(), o)
			}
			err := format.Print(cmd.OutOrStdout(), found, func(int) string {
				text := cmd.Root().DisplayName() + " " + found.Client.String() + "\n"
				if found.Server != nil {
					text += fmt.Sprintf("management cluster %s at %s\n", found.Server.Kubernetes, found.Server.Address)
				}
				return text
			})
			return errors.Join(err, failed)
		},
	}
	o.Register(cmd.Flags())
	format.Register(cmd.Flags())
	cmd.Flags().BoolVar(&server, "server", false, "ask the management cluster for its version too")
	return cmd
}

func readServer(ctx context.Context, o *cli.Flags) (*serverVersion, error) {
	config, err := o.Management()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	found, err := d.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	return &serverVersion{Kubernetes: found.GitVersion, Address: config.Host}, nil
}

// Versions are the output of `version -o json`.
type Versions struct {
	Client buildInfo `json:"client"`
	// Server is the management cluster, when it was asked.
	Server *serverVersion `json:"server,omitempty"`
}

// serverVersion is a management cluster.
type serverVersion struct {
	Kubernetes string `json:"kubernetes"`
	Address    string `json:"address"`
}

// buildInfo describes how the binary was built.
type buildInfo struct {
	// Version is empty when it is not known, as are the others.
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified is true when there were changes beside the revision; Time is the revision's.
	Modified bool   `json:"modified"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go,omitempty"`
}

// builtFrom reads the build information in a binary.
func builtFrom(info *debug.BuildInfo) buildInfo {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return buildInfo{
		Version: info.Main.Version, Revision: settings["vcs.revision"], Modified: settings["vcs.modified"] == "true",
		Time: settings["vcs.time"], Go: info.GoVersion,
	}
}

// String is for people.
func (b buildInfo) String() string {
	out := cmp.Or(b.Version, "of unknown version")
	if b.Revision != "" {
		out += ", revision " + b.Revision
		if b.Modified {
			out += " with changes"
		}
		if b.Time != "" {
			out += " of " + b.Time
		}
	}
	if b.Go != "" {
		out += ", " + b.Go
	}
	return out
}
