// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unprovedHere lists commands that cannot run here: the reason, and the tests that cover them, as folder and name.
var unprovedHere = []struct {
	pattern, why string
	shownBy      []string
}{
	{`make (test|verify|generate)`, "they are what runs this", nil},
	{`(?s)kubectl (--context eu-west-1 )?delete (mutatingwebhookconfiguration,|validatingadmissionpolicybinding,|deployment,pod|flowschema,|` +
		`serviceaccount,|clusterrolebinding,|namespace shipper-system).*`, "they remove Shipper, which other pages need",
		[]string{"test/shipperctl TestUninstall"}},
	{`(?s)kubectl get crd -o name .*|kubectl --context eu-west-1 get configmap -A .*|shipperctl clean finalizers.*`, "the same",
		[]string{"test/shipperctl TestUninstall"}},
	{`make demo`, "it takes a minute and fails when one of its own checks does; test/e2e has the same checks",
		[]string{"test/e2e Test16RolloutVanguard"}},
	{`make try CHARTS=.*`, "the charts are the reader's", []string{"test/fleet/up TestAChartAndAFolderOfChartsAreServed"}},
	{regexp.QuoteMeta(last), "it ends the fleet; it is run after all tests", nil},
	{`git clone https://shipper\.dev/shipper && cd shipper`, "the reader is in the source already", nil},
	{`docker build -t shipper:latest \.|kind load .*`, "it needs an engine for containers", []string{"test/chart TestInstalling"}},
	{`make build|bin/shipperctl .*`, "on kind; the first way has the same programs in PATH", []string{"test/docs TestQuickStart"}},
	{`kubectl apply --server-side (--force-conflicts )?-k manifests/deploy|kubectl rollout status -n shipper-system deployment/shipper`,
		"Shipper's Pods cannot run here; make shipper-up takes their place", []string{"test/chart TestInstalling"}},
	{`shipperctl clusters setup management( --webhook-ignore)?`,
		"without --webhook-url the gate would be asked for at a Service that leads nowhere here", []string{"test/shipperctl TestSetUpAndJoin"}},
	{`(?s)helm upgrade .*`, "it needs the reader's registry", []string{"test/chart TestTheChartInstallsWhatTheOverlaysInstall"}},
	{`shipperctl check try .*`, "it measures by a Prometheus, which the fleet here has not",
		[]string{"cmd/shipperctl/check TestACheckIsMeasuredInEachClusterAsTheReconcilerDoes"}},
	{`shipperctl clusters grant .*`, "the file with the rules is the reader's", []string{"test/shipperctl grantsAreOfNamesForAnotherAccount"}},
	{`shipperctl chart check .*`, "the chart is the reader's", []string{"cmd/shipperctl/chartcheck TestCheckOfAFolder"}},
	{`shipperctl backup restore .*`, "it asks its reader, and wants Shipper to be down", []string{"test/restore TestABackupIsRestored"}},
	{`shipperctl (shipyard|audit) .*`, "a delivery takes a Shipyard and several users", []string{
		"cmd/shipperctl/shipyard TestRunsAreShown", "cmd/shipperctl/shipyard TestALoanIsPrintedOrMade",
		"cmd/shipperctl/audit TestTheTimeLineHasWhatObjectsRecord",
	}},
	{`shipperctl convert -f (canary|rollout)\.yaml .*|kubectl apply -f web\.yaml`, "the files are the reader's",
		[]string{"cmd/shipperctl/convert TestGolden"}},
	{`shipperctl convert -f shipyard\.yaml .*|kubectl apply -f shop\.yaml`, "the file is the reader's",
		[]string{"cmd/shipperctl/convert TestGolden"}},
	{`kubectl get sr web-x7k2p .*`, "the run is one of a shipyard that a converter made",
		[]string{"apis/rules/shipyard TestARunSaysThatItsEvaluationMeasuredNothing"}},
	{`shipperctl rollout history web`, "it shows what a rollback left", []string{"cmd/shipperctl/rollout TestHistory"}},
	{`shipperctl rollout set image .*`, "the application is the reader's",
		[]string{"cmd/shipperctl/rollout TestImagesAreSetInTheValuesOfTheirContainer"}},
	{`docker build .*|IMAGE=\S+ make image`, "the image is built there, and taken apart",
		[]string{"hack/image TestTheImageHasThisAndNothingElse"}},
	{`ln -s "\$\(which shipperctl\)" .*|kubectl krew install .*`, "the folders are the reader's own, and krew is none of ours",
		[]string{"cmd/shipperctl/root TestKubectlFindsThePlugin", "hack/dist TestKrewFindsThePlugin"}},
	{`kind .*|(?s)cat > clusters\.yaml .*kind get kubeconfig .*`, "kind needs an engine for containers; `make fleet-up` takes its place",
		[]string{"test/docs TestQuickStart"}},
}

// unproved returns the reason why a command is not run here, or nil.
func unproved(c command) *string {
	for _, u := range unprovedHere {
		if regexp.MustCompile(`^(?:` + u.pattern + `)$`).MatchString(c.bare()) {
			return &u.why
		}
	}
	return nil
}

// TestWhatShowsTheRest fails for named tests that do not exist, and for listed commands that no document has.
func TestWhatShowsTheRest(t *testing.T) {
	for _, u := range unprovedHere {
		for _, shown := range u.shownBy {
			folder, name, _ := strings.Cut(shown, " ")
			if !defines(t, folder, name) {
				t.Errorf("%s: there is no %s in %s", u.pattern, name, folder)
			}
		}
		used := false
		for _, p := range pages(t) {
			for _, b := range p.blocks {
				for _, c := range b.commands() {
					used = used || regexp.MustCompile(`^(?:`+u.pattern+`)$`).MatchString(c.bare())
				}
			}
		}
		if !used {
			t.Errorf("%s: no document has such a command", u.pattern)
		}
	}
}

// defines reports whether a folder has a test with this name.
func defines(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
