// SPDX-License-Identifier: Apache-2.0

// Package block has `shipperctl block` and `shipperctl override`: it creates, lists and lifts RolloutBlocks, and overrides them for
// one Application.
package block

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type options struct {
	cli.Flags
	clock  clock.PassiveClock
	global bool
}

// NewCommand returns `block` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := cli.Group("block", "Stop rollouts, and lift such blocks", newCreate(o), newList(o), newLift(o))
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVarP(&o.global, "global", "g", false,
		"blocks that hold in every namespace: those in namespace "+shipper.GlobalBlocksNamespace)
	return cmd
}

// clientAt returns a client, and the namespace of the flags.
func (o *options) clientAt() (client.Client, string, error) {
	if o.global && o.Namespace != "" && o.Namespace != shipper.GlobalBlocksNamespace {
		return nil, "", cli.WithCode(cli.Misused, fmt.Errorf("--global and --namespace %s exclude each other", o.Namespace))
	}
	c, namespace, err := o.Client()
	if o.global {
		namespace = shipper.GlobalBlocksNamespace
	}
	return c, namespace, err
}

func newLift(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "lift NAME",
		Short: "Delete a block; what it stopped goes on where it stood",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := o.clientAt()
			if err != nil {
				return err
			}
			namespace, name := split(args[0], namespace)
			b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if err := c.Delete(cmd.Context(), b); err != nil {
				return fmt.Errorf("lifting block %s/%s: %w", namespace, name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "block %s/%s is lifted\n", namespace, name)
			return nil
		},
	}
}

// split reads the name of a block, which may be given as refusals name it, with its namespace.
func split(arg, namespace string) (string, string) {
	if before, name, ok := strings.Cut(arg, "/"); ok {
		return before, name
	}
	return namespace, arg
}

// NewOverrideCommand returns `override`.
func NewOverrideCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	var reason string
	var names []string
	cmd := &cobra.Command{
		Use:   "override APPLICATION --reason WHY",
		Short: "Let one application go on in spite of the blocks that hold it",
		Long: "Let one application go on in spite of the blocks that hold it: they are named in its annotation, and in that of its\n" +
			"newest release while that is rolling out. It takes the verb override on each of the blocks. Who, when and why is kept.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			blocks, err := block.ParseOverrides(strings.Join(names, ","))
			if err != nil {
				return cli.WithCode(cli.Misused, fmt.Errorf("--blocks: %w", err))
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			done, err := o.override(cmd.Context(), c, cli.ApplicationKey(namespace, args[0]), blocks, reason)
			for _, line := range done {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.Flags().StringVar(&reason, "reason", "", "why; a block may require it")
	cmd.Flags().StringSliceVar(&names, "blocks", nil, "the blocks, as namespace/name (default all that hold in the namespace now)")
	return cmd
}

// override annotates an Application, and its newest Release unless that is complete, and returns a line for each.
func (o *options) override(
	ctx context.Context, c client.Client, key client.ObjectKey, blocks []types.NamespacedName, reason string,
) ([]string, error) {
	app, releases, err := cli.ReadApplication(ctx, c, key)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		if blocks, err = o.activeBlocks(ctx, c, key.Namespace); err != nil {
			return nil, err
		}
	}
	objects := []client.Object{app}
	if rel := stamp.Newest(app, releases); rel != nil && !strategy.Complete(rel) {
		objects = append(objects, rel)
	}
	var done []string
	for _, object := range objects {
		said, err := annotate(ctx, c, object, blocks, reason)
		if err != nil {
			return done, err
		}
		done = append(done, said)
	}
	return done, nil
}

// activeBlocks are the blocks that hold in a namespace now.
func (o *options) activeBlocks(ctx context.Context, c client.Client, namespace string) ([]types.NamespacedName, error) {
	var out []types.NamespacedName
	for _, ns := range []string{namespace, shipper.GlobalBlocksNamespace} {
		var list shipper.RolloutBlockList
		if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("listing blocks, which --blocks can name instead: %w", err)
		}
		for i := range list.Items {
			b := &list.Items[i]
			if block.Active(b, o.clock.Now()) && (b.Spec.Enforcement == "" || b.Spec.Enforcement == shipper.RolloutBlockDeny) {
				out = append(out, block.Name(b))
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no block holds in this namespace now: there is nothing to override")
	}
	return out, nil
}

func annotate(
	ctx context.Context, c client.Client, object client.Object, blocks []types.NamespacedName, reason string,
) (string, error) {
	kind := "application"
	if _, ok := object.(*shipper.Release); ok {
		kind = "release"
	}
	before, err := block.ParseOverrides(object.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation])
	if err != nil {
		before = nil // it overrides nothing now, and is mended by this
	}
	annotations := map[string]string{
		shipper.RolloutBlockOverrideAnnotation: block.FormatOverrides(slices.Concat(before, blocks)),
	}
	if reason != "" {
		annotations[shipper.RolloutBlockOverrideReasonAnnotation] = reason
	}
	if err := cli.Annotate(ctx, c, object, annotations); err != nil {
		return "", fmt.Errorf("overriding %s for %s %s: %w", block.FormatOverrides(blocks), kind, object.GetName(), err)
	}
	return fmt.Sprintf("%s %s overrides %s", kind, object.GetName(), block.FormatOverrides(blocks)), nil
}
