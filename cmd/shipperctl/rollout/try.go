// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newTest(o *options) *cobra.Command {
	var format cli.Format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "test RELEASE",
		Short: "Run the tests of a release's chart in each of its clusters, and say what came of them",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckTimeout(timeout); err != nil {
				return err
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			key := cli.ApplicationKey(namespace, strings.TrimPrefix(strings.TrimPrefix(args[0], "rel/"), "release/"))
			results, err := runTests(cmd.Context(), c, key, string(uuid.NewUUID()), timeout)
			if results == nil {
				return err
			}
			return errors.Join(format.Print(cmd.OutOrStdout(), results, func(width int) string { return testTable(results, width) }), err)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait for all clusters; the tests go on nonetheless")
	format.Register(cmd.Flags())
	return cmd
}

// testResult is the result of a Release's tests in a cluster, as `-o json` prints it.
type testResult struct {
	Cluster string `json:"cluster"`
	// Tests is Running, Succeeded or Failed; Waiting where they have not begun.
	Tests   string `json:"tests"`
	Message string `json:"message,omitempty"`
}

// waiting is the state of tests that have not begun.
const waiting = "Waiting"

// runTests requests the tests of a Release, and waits for their results.
func runTests(
	ctx context.Context, c client.Client, key client.ObjectKey, request string, timeout time.Duration,
) ([]testResult, error) {
	rel := &shipper.Release{}
	if err := c.Get(ctx, key, rel); err != nil {
		return nil, fmt.Errorf("reading release %s: %w", key, err)
	}
	if err := cli.Annotate(ctx, c, rel, map[string]string{shipper.ReleaseTestAnnotation: request}); err != nil {
		return nil, fmt.Errorf("asking for the tests of release %s: %w", key, err)
	}
	results, over, err := await(ctx, c, key, request, timeout)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return results, err
	case !over:
		return results, cli.WithCode(cli.TimedOut, fmt.Errorf("the tests of release %s did not end within %s", key, timeout))
	case len(results) == 0:
		return nil, fmt.Errorf("release %s is placed on no cluster", key)
	}
	if n := len(slices.DeleteFunc(slices.Clone(results), func(r testResult) bool { return r.Tests == string(shipper.HookSucceeded) })); n > 0 {
		return results, fmt.Errorf("the tests of release %s failed in %d of %d clusters", key, n, len(results))
	}
	return results, nil
}

// await reads a Release's InstallationTarget until its tests have ended in each cluster.
func await(ctx context.Context, c client.Reader, key client.ObjectKey, request string, timeout time.Duration) ([]testResult, bool, error) {
	it, results := &shipper.InstallationTarget{}, []testResult{}
	over, err := cli.Await(ctx, c, key, it, time.Second, timeout, func() (over bool) {
		results, over = outcomes(it, request)
		return over
	})
	if err != nil {
		return results, false, fmt.Errorf("reading installation target %s: %w", key, err)
	}
	return results, over, nil
}

// outcomes are the results of the requested tests by cluster, and whether all have ended.
func outcomes(it *shipper.InstallationTarget, request string) (results []testResult, over bool) {
	over = true
	for _, name := range slices.Sorted(slices.Values(it.Spec.Clusters)) {
		result := testResult{Cluster: name, Tests: waiting}
		for _, c := range it.Status.Clusters {
			if c.Name != name {
				continue
			}
			if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); ready != nil {
				result.Message = ready.Message
			}
			if c.Test != nil && c.Test.Request == request {
				result.Tests, result.Message = string(c.Test.Phase), cmp.Or(c.Test.Message, result.Message)
			}
		}
		over = over && (result.Tests == string(shipper.HookSucceeded) || result.Tests == string(shipper.HookHasFailed))
		results = append(results, result)
	}
	return results, over
}

func testTable(results []testResult, width int) string {
	rows := make([][]string, 0, len(results))
	for _, r := range results {
		rows = append(rows, []string{r.Cluster, r.Tests, cmp.Or(r.Message, "-")})
	}
	return screen.Table(width, []string{"CLUSTER", "TESTS", "MESSAGE"}, rows)
}
