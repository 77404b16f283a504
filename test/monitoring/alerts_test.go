// SPDX-License-Identifier: Apache-2.0

// Package monitoring proves that the alerts and the dashboard of manifests/monitoring are ones that Prometheus can read, and that
// alerts fire when they should: Prometheus' own parser reads them, and its engine asks them of series like those that Shipper serves.
package monitoring

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

// rules reads the groups of all PrometheusRules.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	files, err := filepath.Glob("../../manifests/monitoring/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []rulefmt.Rule
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Kind string `json:"kind"`
			Spec any    `json:"spec"`
		}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "PrometheusRule" {
			continue
		}
		spec, err := yaml.Marshal(object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%s: %v", file, errs)
		}
		for _, g := range groups.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out
}

// certificate is a series of a replica's certificate of a kind that ends some days after now, the time of all series being 0.
func certificate(replica, kind string, days int) string {
	return fmt.Sprintf("\tshipper_webhook_certificate_not_after_timestamp_seconds{instance=%q,certificate=%q} %d+0x200\n",
		replica, kind, days*86400)
}

// healthy are series of a Shipper that is well, as far as alerts notice when they are not there.
const (
	healthy  = watching + leading
	watching = "\tshipper_webhook_blocks_watch_down_seconds{instance=\"a\"} 0x200\n"
	leading  = "\tleader_election_master_status{name=\"shipper-reconciler\",instance=\"a\"} 1+0x200\n" + following
	// following is a reconciler that waits for its turn.
	following = "\tleader_election_master_status{name=\"shipper-reconciler\",instance=\"b\"} 0x200\n"
)

// gauge is a series that stays as it is.
func gauge(name, labels string, value int) string {
	return fmt.Sprintf("\t%s{%s} %d+0x200\n", name, labels, value)
}

// counter is a series of Shipper's Pods that grows by some in a minute.
func counter(name, labels string, perMinute int) string {
	return fmt.Sprintf("\t%s{namespace=\"shipper-system\",%s} 0+%dx200\n", name, labels, perMinute)
}

// ready says of a cluster whether it can be worked with.
func ready(cluster string, value int) string {
	return gauge("shipper_cluster_ready", fmt.Sprintf(`namespace="shipper-system",cluster=%q`, cluster), value)
}

// credentials says of those of a cluster whether they will do.
func credentials(cluster string, value int) string {
	return gauge("shipper_cluster_credentials_valid", fmt.Sprintf(`namespace="shipper-system",cluster=%q`, cluster), value)
}

// answers are answers of the webhook, in a minute.
func answers(decision string, perMinute int) string {
	return counter("shipper_webhook_requests_total", fmt.Sprintf("kind=%q,decision=%q", "Release", decision), perMinute)
}

// errors are passes of a controller, in a minute, that failed.
func errors(controller string, perMinute int) string {
	return counter("controller_runtime_reconcile_errors_total", fmt.Sprintf("controller=%q", controller), perMinute)
}

// hanging is a worker that has worked for some seconds.
func hanging(seconds int) string {
	return gauge("workqueue_unfinished_work_seconds", `namespace="shipper-system",controller="release"`, seconds)
}

// taking is a histogram of requests that took a time, in seconds.
func taking(le string) string {
	const name = "shipper_webhook_request_duration_seconds_bucket"
	out := counter(name, `le="+Inf"`, 10)
	for _, bucket := range []string{"0.5", "1", "2.5"} {
		perMinute := 0
		if bucket >= le {
			perMinute = 10
		}
		out += counter(name, fmt.Sprintf("le=%q", bucket), perMinute)
	}
	return out
}

// situations are series by their meaning, and the alerts that they should raise.
type situations map[string]struct {
	series string
	want   []string
}

func (s situations) check(t *testing.T) {
	t.Helper()
	for sentence, tc := range s {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, firing(t, tc.series)); diff != "" {
				t.Error("alerts (-want +got):\n" + diff)
			}
		})
	}
}

func TestAlerts(t *testing.T) {
	situations{
		"all is new": {
			healthy + certificate("a", "serving", 90) + certificate("b", "serving", 90) + certificate("a", "authority", 365), nil,
		},
		"renewal has just begun": {healthy + certificate("a", "serving", 30), nil},
		"renewal is late":        {healthy + certificate("a", "serving", 20), []string{"ShipperWebhookCertificateNotRenewed"}},
		"the end is near": {
			healthy + certificate("a", "serving", 6),
			[]string{"ShipperWebhookCertificateNotRenewed", "ShipperWebhookCertificateEndsSoon"},
		},
		"an old authority": {healthy + certificate("a", "authority", 50), []string{"ShipperWebhookAuthorityNotRenewed"}},
		"one replica is old": {
			healthy + certificate("a", "serving", 90) + certificate("b", "serving", 30), []string{"ShipperWebhookCertificatesDiffer"},
		},
		"it cannot write": {healthy + errors("certificates", 1), []string{"ShipperWebhookCertificateRotationFails"}},
		"others fail":     {healthy + errors("release", 1), nil},
	}.check(t)
}

func TestAlertsOfTheGate(t *testing.T) {
	const down = "shipper_webhook_blocks_watch_down_seconds"
	situations{
		"it judges":             {healthy + answers("allowed", 600) + answers("blocked", 60) + answers("invalid", 60), nil},
		"it cannot judge":       {healthy + answers("unavailable", 1), []string{"ShipperWebhookFailing"}},
		"it has a defect":       {healthy + answers("failed", 1), []string{"ShipperWebhookFailing"}},
		"it is fast":            {healthy + taking("0.5"), nil},
		"it is slow":            {healthy + taking("2.5"), []string{"ShipperWebhookSlow"}},
		"it is not there":       {leading, []string{"ShipperWebhookAbsent"}},
		"no watch for a minute": {healthy + gauge(down, `instance="b"`, 61), []string{"ShipperBlocksWatchDown"}},
		"a watch begins again":  {healthy + gauge(down, `instance="b"`, 2), nil},
	}.check(t)
}

func TestAlertsOfTheReconciler(t *testing.T) {
	another := gauge("leader_election_master_status", `name="shipper-reconciler",instance="c"`, 1)
	anothers := gauge("leader_election_master_status", `name="something-else",instance="c"`, 1)
	foreign := "\tcontroller_runtime_reconcile_errors_total{namespace=\"b\",controller=\"release\"} 0+12x200\n"
	situations{
		"it is not there":                    {watching, []string{"ShipperReconcilerLeaders"}},
		"no replica leads":                   {watching + following, []string{"ShipperReconcilerLeaders"}},
		"two lead":                           {healthy + another, []string{"ShipperReconcilerLeaders"}},
		"other programs elect, too":          {healthy + anothers, nil},
		"a controller fails all the time":    {healthy + errors("release", 12), []string{"ShipperReconcilerFails"}},
		"another project's controller fails": {healthy + foreign, nil},
		"a worker works":                     {healthy + hanging(20), nil},
		"a worker hangs":                     {healthy + hanging(301), []string{"ShipperReconcilerHangs"}},
	}.check(t)
}

func TestAlertsOfClusters(t *testing.T) {
	situations{
		"all can be worked with":  {healthy + ready("eu", 1) + ready("us", 1), nil},
		"one cannot":              {healthy + ready("eu", 1) + ready("us", 0), []string{"ShipperClusterUnreachable"}},
		"credentials are renewed": {healthy + credentials("eu", 1) + credentials("us", 1), nil},
		"credentials end":         {healthy + credentials("eu", 1) + credentials("us", 0), []string{"ShipperClusterCredentialsEnd"}},
	}.check(t)
}

func TestAlertsOfServices(t *testing.T) {
	const empty = "shipper_service_without_endpoints"
	of := `namespace="shipper-system",exported_namespace="shop",application="web",cluster="eu"`
	situations{
		"all have endpoints":        {healthy + ready("eu", 1), nil},
		"one has none":              {healthy + gauge(empty, of, 1), []string{"ShipperServiceWithoutEndpoints"}},
		"one had none, an hour ago": {healthy + "\t" + empty + "{" + of + "} 1x10 _x200\n", nil},
	}.check(t)
}

func TestAlertsOfRollouts(t *testing.T) {
	reason := func(r string) string { return `namespace="shipper-system",reason="` + r + `"` }
	const taken = `namespace="shipper-system",why="RolloutFailed"`
	situations{
		"all go on": {healthy + gauge("shipper_rollouts", reason("Soaking"), 7) +
			gauge("shipper_rollout_oldest_step_seconds", reason("Soaking"), 90000), nil},
		"one has failed": {healthy + gauge("shipper_rollouts", reason("Failed"), 1), []string{"ShipperRolloutFailed"}},
		"one was taken back": {
			healthy + "\tshipper_rollout_moves_total{" + taken + "} 0x50 1x20\n", []string{"ShipperRolloutTakenBack"},
		},
		"one was taken back long ago": {healthy + "\tshipper_rollout_moves_total{" + taken + "} 0x10 1x60\n", nil},
		"one is stuck": {
			healthy + gauge("shipper_rollout_oldest_step_seconds", reason("Moving"), 3700), []string{"ShipperRolloutStuck"},
		},
	}.check(t)
}

func TestAlertsOfChecks(t *testing.T) {
	held := func(reason string) string {
		return gauge("shipper_rollouts", `namespace="shipper-system",reason="`+reason+`"`, 1)
	}
	measured := func(result string, perMinute int) string {
		return counter("shipper_check_measurements_total", fmt.Sprintf("result=%q", result), perMinute)
	}
	situations{
		"all are measured": {healthy + held("Checking") + measured("Passed", 60) + measured("Failed", 60) + measured("Error", 0), nil},
		"nothing is":       {healthy + measured("Passed", 0) + measured("Error", 0), nil},
		"one is undecided": {healthy + held("CheckUndecided"), []string{"ShipperChecksUndecided"}},
		"some give no value": {
			healthy + measured("Passed", 60) + measured("Inconclusive", 60) + measured("Error", 60), nil,
		},
		"most give no value": {healthy + measured("Passed", 2) + measured("Error", 3), []string{"ShipperCheckErrors"}},
		"another program's do not": {
			healthy + measured("Passed", 1) + "\tshipper_check_measurements_total{namespace=\"b\",result=\"Error\"} 0+9x200\n", nil,
		},
	}.check(t)
}

func TestAlertsOfNotifications(t *testing.T) {
	const sent = "shipper_notifications_total"
	result := func(r string) string { return `namespace="shipper-system",result="` + r + `"` }
	situations{
		"all are delivered": {healthy + gauge(sent, result("delivered"), 9) + counter(sent, `result="delivered"`, 1), nil},
		"some are given up": {healthy + counter(sent, `result="failed"`, 1), []string{"ShipperNotificationsFail"}},
		"the first is given up, and there was no series before": {
			healthy + "\t" + sent + "{" + result("failed") + "} _x30 1+0x200\n", []string{"ShipperNotificationsFail"},
		},
		"one was given up long ago":      {healthy + gauge(sent, result("failed"), 9), nil},
		"another program's are given up": {healthy + "\t" + sent + "{namespace=\"b\",result=\"failed\"} 0+1x200\n", nil},
	}.check(t)
}

// firing are the alerts whose expressions are true of series at the end of an hour.
func firing(t *testing.T, series string) (got []string) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n"+series)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	for _, r := range rules(t) {
		query, err := engine.NewInstantQuery(context.Background(), storage, promql.NewPrometheusQueryOpts(false, 0), r.Expr, time.Unix(3600, 0))
		if err != nil {
			t.Fatal(err)
		}
		vector, err := query.Exec(context.Background()).Vector()
		query.Close()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		if len(vector) > 0 && !slices.Contains(got, r.Alert) {
			got = append(got, r.Alert)
		}
	}
	return got
}

// An operator at night has to read what is wrong, and where to look it up.
func TestAlertsSayWhatIsWrong(t *testing.T) {
	all := rules(t)
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, r := range all {
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no severity, summary or description", r.Alert)
		}
	}
}
