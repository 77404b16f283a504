// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// dnsOutage is the documentation's global block.
const dnsOutage = `
apiVersion: shipper.booking.com/v1alpha1
kind: RolloutBlock
metadata:
  name: dns-outage
  namespace: rollout-blocks-global
spec:
  message: DNS issues, troubleshooting in progress
  author:
    type: user
    name: jdoe
`

// TestARolloutBlock is what the documentation says of blocks, done with kubectl: put in place, seen, overridden, lifted.
func TestARolloutBlock(t *testing.T) {
	u := begin(t)
	u.alone()
	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "stable"))
	rel := u.newest(1)
	u.completes(rel)

	const block, said = "rollout-blocks-global/dns-outage", "rollouts blocked by: rollout-blocks-global/dns-outage"
	if out, err := u.globally(u.Ctx, dnsOutage, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	u.Cleanup(func() {
		_, _ = u.globally(context.Background(), "", "delete", "rb", "dns-outage", "--ignore-not-found")
	})
	for kind, name := range map[string]string{"app": appName, "rel": rel} {
		phrases := []string{"Message: " + said + " Reason: RolloutsBlocked Status: True Type: Blocked"} // the condition
		if kind == "app" {
			phrases = append(phrases, "Warning RolloutBlocked") // the event, for its Release too, which rests
		}
		u.describes(kind, name, phrases...)
	}
	changed := u.application(u.Env.Charts.URL, "0.0.2", "stable")
	u.refuses(said, changed, "apply", "-f", "-")
	u.refuses(said, "", "patch", "rel", rel, "--type=merge", "-p", `{"spec":{"targetStep":0}}`)
	u.refuses(said, strings.ReplaceAll(changed, appName, "another-server"), "apply", "-f", "-")
	u.refuses(said, "", "delete", "rel", rel)

	const annotation = "shipper.booking.com/rollout-block.override="
	u.kubectl("annotate", "app/"+appName, "rel/"+rel, annotation+block)
	u.overriddenBy("dns-outage", map[string]string{
		"MESSAGE": "DNS issues, troubleshooting in progress", "AUTHOR TYPE": "user", "AUTHOR NAME": "jdoe",
		"OVERRIDING APPLICATIONS": u.Namespace + "/" + appName, "OVERRIDING RELEASES": u.Namespace + "/" + rel,
	})
	u.kubectl("patch", "rel", rel, "--type=merge", "-p", `{"spec":{"targetStep":0}}`)
	u.Eventually("achieved step", "staging", func() (string, error) {
		return u.run(u.Ctx, "", "get", "rel", rel, "-o", "jsonpath={.status.achievedStep.name}")
	})
	u.describes("rel", rel, "Normal RolloutBlockOverridden", block)

	u.kubectl("annotate", "app/"+appName, annotation+"", "--overwrite")
	u.overriddenBy("dns-outage", map[string]string{"OVERRIDING APPLICATIONS": "", "OVERRIDING RELEASES": u.Namespace + "/" + rel})
	if out, err := u.globally(u.Ctx, "", "delete", "rb", "dns-outage"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	u.Eventually("a rehearsed change without the block", "admitted", u.probe)
	u.awaits("app/"+appName, "Blocked=False")
	u.awaits("rel/"+rel, "Blocked=False")
	u.Eventually("the override of the release", "none", func() (string, error) {
		r := &shipper.Release{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: rel}, r)
		if left := r.Annotations[shipper.RolloutBlockOverrideAnnotation]; left != "" {
			return left, err
		}
		return "none", err
	})
	u.completes(rel)
}

// globally runs kubectl in the namespace of blocks that bear on all.
func (u *user) globally(ctx context.Context, stdin string, args ...string) (string, error) {
	return u.with(ctx, stdin, append(args, "-n", shipper.GlobalBlocksNamespace, "--kubeconfig", world.fleet.Management.Kubeconfig)...)
}

// refuses runs kubectl, which must fail and say why.
func (u *user) refuses(why, stdin string, args ...string) {
	u.Helper()
	out, err := u.run(u.Ctx, stdin, args...)
	if err == nil || !strings.Contains(out, why) {
		u.Errorf("kubectl %s: %v\n%s\nwant: %s", strings.Join(args, " "), err, out, why)
	}
}

// overriddenBy waits until kubectl get -o wide says that of a global block, in columns of these names.
func (u *user) overriddenBy(block string, want map[string]string) {
	u.Helper()
	u.Eventually("what is said of "+block, fmt.Sprint(want), func() (string, error) {
		out, err := u.globally(u.Ctx, "", "get", "rb", block, "-o", "wide")
		seen := map[string]string{}
		for name, value := range columns(out) {
			if _, asked := want[name]; asked {
				seen[name] = value
			}
		}
		return fmt.Sprint(seen), err
	})
}

// columns are the first row of a table that kubectl wrote, by the names of its columns.
func columns(table string) map[string]string {
	out := map[string]string{}
	lines := strings.Split(table, "\n")
	if len(lines) < 2 {
		return out
	}
	header, row := lines[0], lines[1]
	for at := 0; at < len(header); {
		end := len(header)
		if gap := strings.Index(header[at:], "   "); gap >= 0 {
			end = at + gap
			for end < len(header) && header[end] == ' ' {
				end++
			}
		}
		value := ""
		if at < len(row) {
			value = row[at:]
			if end < len(header) {
				value = row[at:min(end, len(row))]
			}
		}
		out[strings.TrimSpace(header[at:end])] = strings.TrimSpace(value)
		at = end
	}
	return out
}

// TestColumns are what kubectl get says of each kind, by its short name.
func TestColumns(t *testing.T) {
	u := begin(t)
	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "stable"))
	rel := u.newest(1)
	u.Eventually("achieved step", "staging", func() (string, error) {
		return u.run(u.Ctx, "", "get", "rel", rel, "-o", "jsonpath={.status.achievedStep.name}")
	})
	for kind, want := range map[string]map[string]string{
		"app": {
			"NAME": appName, "LATEST RELEASE": rel, "STEP": "0/1 staging", "ROLLING OUT": "True", "BLOCKED": "False", "FAILED": "",
			"HEALTH": "Healthy", "VERSION": "0.0.1",
		},
		"rel": {
			"NAME": rel, "GENERATION": "0", "VERSION": "0.0.1", "OUTCOME": "InProgress", "ACHIEVED STEP": "staging", "CLUSTERS": west,
			"TRAFFIC": "0 %", "WAITING": "AwaitingCommand", "REASON": "waits until targetStep is raised to 1 (full on)",
		},
		"it": {"NAME": rel, "OPERATIONAL": "True", "READY": "True", "REASON": ""},
		"ct": {"NAME": rel, "OPERATIONAL": "True", "READY": "True", "REASON": ""},
		"tt": {"NAME": rel, "OPERATIONAL": "True", "READY": "True", "REASON": ""},
		"cl": {"NAME": west, "REGION": "eu-west", "READY": "True"},
	} {
		u.Eventually("columns of "+kind, fmt.Sprint(want), func() (string, error) {
			out, err := u.run(u.Ctx, "", "get", kind)
			seen := columns(out)
			if seen["AGE"] == "" {
				return out, err
			}
			for name := range seen {
				if _, asked := want[name]; !asked {
					delete(seen, name)
				}
			}
			return fmt.Sprint(seen), err
		})
	}
}

// TestColumnsSayWhyAReleaseWaits has a Release for a region without clusters.
func TestColumnsSayWhyAReleaseWaits(t *testing.T) {
	u := begin(t)
	u.applies(strings.ReplaceAll(u.application(u.Env.Charts.URL, "0.0.1", "stable"), "eu-west", "eu-westx"))
	u.waitsBecauseOf(u.newest(1), "eu-westx")
}

// waitsBecauseOf waits until kubectl get says that a Release waits to be scheduled, and a word of the reason.
func (u *user) waitsBecauseOf(release, word string) {
	u.Helper()
	u.Eventually("columns of the Release", "Scheduled, because of "+word, func() (string, error) {
		out, err := u.run(u.Ctx, "", "get", "rel", release)
		if seen := columns(out); strings.Contains(seen["REASON"], word) {
			return seen["WAITING"] + ", because of " + word, err
		}
		return out, err
	})
}
