// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/manifests"
)

// NewCommand returns `doctor`.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &cli.Flags{}
	var account string
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is broken in the management cluster and in all clusters that are joined to it",
		Long: "Look for what is broken in the management cluster and in all clusters that are joined to it: versions, kinds, rights,\n" +
			"webhooks and their certificate, the second line, Shipper's Pods, its reconciler, and each cluster as `clusters check` does.\n" +
			"It calls the webhooks through the API server by dry-run creates of each kind. Nothing is written.\n" +
			"It exits with 1 when something is broken, and with 0 when there are warnings at most.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := o.Management()
			if err != nil {
				return err
			}
			fleet, err := newFleet(config)
			if err != nil {
				return err
			}
			fleet.Namespace, fleet.ServiceAccount, fleet.Clock = o.Namespace, account, clock
			found := Sum(fleet.Examine(cmd.Context()))
			err = format.Print(cmd.OutOrStdout(), found, func(width int) string {
				text := found.Text(width)
				if found.Broken == 0 {
					text += "nothing is broken\n"
				}
				return text
			})
			if err == nil && found.Broken > 0 {
				err = fmt.Errorf("%d broken", found.Broken)
			}
			return err
		},
	}
	o.Register(cmd.Flags())
	format.Register(cmd.Flags())
	cmd.Flags().StringVar(&account, "management-cluster-service-account", shipper.ManagementServiceAccount,
		"name of the service account Shipper uses in the management cluster")
	return cmd
}

func newFleet(config *rest.Config) (*Fleet, error) {
	c, err := cli.NewClient(config, clientgoscheme.AddToScheme, certmanagerv1.AddToScheme, shipper.AddToScheme)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return &Fleet{Client: c, Discovery: d}, nil
}

// Fleet is a management cluster and all that is joined to it.
type Fleet struct {
	// Client reads the management cluster, and sends dry-run creates and access reviews, which store nothing.
	Client client.Client
	// Discovery reads its version.
	Discovery *discovery.DiscoveryClient
	// Namespace is Shipper's, and ServiceAccount the account that it runs as.
	Namespace, ServiceAccount string
	// Clock decides what has expired.
	Clock clock.PassiveClock
}

// Examine looks at everything. What cannot be looked at is a finding, too.
func (f *Fleet) Examine(ctx context.Context) []Check {
	info, err := f.Discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return []Check{{"management cluster", []Finding{broken(fmt.Sprintf("it does not answer: %v", err),
			"nothing can be said about all that is in it", "look whether its API server is up, and whether the context is the one that you mean")}}}
	}
	if findings := f.elsewhere(ctx); findings != nil {
		return []Check{{"place", findings}}
	}
	out := []Check{
		{"management cluster", tooOld(info.GitVersion, leastManagement)},
		{"kinds", f.compare(ctx, manifests.CRD, kindFindings)},
		{"rights", f.rights(ctx)},
		{"approvers", f.approvers(ctx)},
		{"webhooks", f.webhooks(ctx)},
		{"certificate", f.certificate(ctx)},
		{"path of reviews", f.reviewPath(ctx)},
		{"second line", f.compare(ctx, manifests.Policy, policyFindings)},
		{"fairness", f.fairness(ctx)},
		{"pods", look(ctx, f, "Deployment", DeploymentName, deploymentFindings)},
		{"reconciler", look(ctx, f, "Lease", cli.LeaseName, func(l *coordinationv1.Lease) []Finding {
			return leaseFindings(l, f.Clock.Now())
		})},
	}
	return advise(mergeDenied(append(out, f.clusters(ctx)...)), f.setUpAgain(ctx))
}

// compare calls judge for each object in a folder of the manifests.
func (f *Fleet) compare(ctx context.Context, folder string, judge func(want, live *unstructured.Unstructured) []Finding) []Finding {
	wanted, err := manifests.Objects(folder)
	return f.compareAll(ctx, wanted, err, judge)
}

// compareAll is compare for objects that were read, or could not be.
func (f *Fleet) compareAll(
	ctx context.Context, wanted []*unstructured.Unstructured, err error, judge func(want, live *unstructured.Unstructured) []Finding,
) []Finding {
	if err != nil {
		return []Finding{unreadable("the manifests", err)}
	}
	var out []Finding
	for _, want := range wanted {
		live, err := f.live(ctx, want)
		if err != nil {
			out = append(out, unreadable(want.GetKind()+" "+want.GetName(), err))
			continue
		}
		out = append(out, judge(want, live)...)
	}
	return out
}

func (f *Fleet) fairness(ctx context.Context) []Finding {
	wanted, err := manifests.FlowControl()
	return f.compareAll(ctx, wanted, err, fairnessFindings)
}

// webhooks compares the configurations with the manifests and, if nothing of them is missing, calls them.
func (f *Fleet) webhooks(ctx context.Context) []Finding {
	out := f.compare(ctx, manifests.Webhook, webhookFindings)
	if slices.ContainsFunc(out, func(found Finding) bool { return found.Level == levelBroken }) {
		return out
	}
	return append(out, probeFindings(ProbeWebhooks(ctx, f.Client), f.Namespace)...)
}

// live reads the cluster-scoped object of the kind and name of want; nil if there is none.
func (f *Fleet) live(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := f.Client.Get(ctx, client.ObjectKey{Name: want.GetName()}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return live, err
}

// look reads an object in Shipper's namespace, and returns what judge finds. An object that is not there is nil.
func look[T any, P interface {
	*T
	client.Object
}](ctx context.Context, f *Fleet, kind, name string, judge func(P) []Finding) []Finding {
	o := P(new(T))
	err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return judge(nil)
	case err != nil:
		return []Finding{unreadable("the "+kind+" "+name, err)}
	}
	return judge(o)
}

// configured reads the webhooks of both configurations.
func (f *Fleet) configured(ctx context.Context) ([]webhook, []Finding) {
	wanted, err := manifests.Objects(manifests.Webhook)
	if err != nil {
		return nil, []Finding{unreadable("the manifests", err)}
	}
	var webhooks []webhook
	for _, want := range wanted {
		live, err := f.live(ctx, want)
		if err != nil {
			return nil, []Finding{unreadable(want.GetKind()+" "+want.GetName(), err)}
		}
		if live != nil {
			webhooks = append(webhooks, webhooksOf(live)...)
		}
	}
	return webhooks, nil
}

// certificate reports whether API servers accept the webhook's.
func (f *Fleet) certificate(ctx context.Context) []Finding {
	webhooks, findings := f.configured(ctx)
	if findings != nil {
		return findings
	}
	found := look(ctx, f, "Secret", certificateSecret, func(secret *corev1.Secret) []Finding {
		return certificateFindings(secret, webhooks, f.Clock.Now())
	})
	return append(found, f.certManager(ctx)...)
}

// certManager reports why cert-manager has not issued or renewed the certificate, if a webhook configuration names a Certificate.
func (f *Fleet) certManager(ctx context.Context) []Finding {
	want, err := manifests.Object(manifests.Webhook, "ValidatingWebhookConfiguration", shipper.GroupName)
	if err != nil {
		return []Finding{unreadable("the manifests", err)}
	}
	live, err := f.live(ctx, want)
	if err != nil || live == nil {
		return nil // the check of webhooks says so
	}
	namespace, name, named := strings.Cut(live.GetAnnotations()[certmanagerv1.WantInjectAnnotation], "/")
	if !named {
		return look(ctx, f, "Deployment", DeploymentName, unrenewedFindings)
	}
	found := &certmanagerv1.Certificate{}
	err = f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		found = nil
	} else if err != nil {
		return []Finding{unreadable("the Certificate "+namespace+"/"+name, err)}
	}
	return certManagerFindings(namespace+"/"+name, found, f.Clock.Now())
}

func (f *Fleet) clusters(ctx context.Context) []Check {
	var all shipper.ClusterList
	if err := f.Client.List(ctx, &all); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // the kind is missing, which kinds reports
		}
		return []Check{{"clusters", []Finding{unreadable("the list of clusters", err)}}}
	}
	slices.SortFunc(all.Items, func(a, b shipper.Cluster) int { return strings.Compare(a.Name, b.Name) })
	if len(all.Items) == 0 {
		return []Check{{"clusters", []Finding{warning("there are none", "Releases have nowhere to go", "shipperctl clusters join")}}}
	}
	return checkEach(all.Items, func(c *shipper.Cluster) Check {
		findings, _ := Cluster(ctx, f.Client, f.Namespace, c, f.Clock.Now())
		return Check{"cluster " + c.Name, findings}
	})
}

// elsewhere is the finding that Shipper is set up in another namespace or under another account than doctor looks at; nil
// without the right to read that.
func (f *Fleet) elsewhere(ctx context.Context) []Finding {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: managementRole}, binding); err != nil {
		return nil
	}
	return elsewhereFindings(binding.Subjects, f.Namespace, f.ServiceAccount)
}

// elsewhereFindings is pure. The subjects are the accounts with Shipper's role.
func elsewhereFindings(subjects []rbacv1.Subject, namespace, account string) []Finding {
	at := func(s rbacv1.Subject) bool { return s.Namespace == namespace && s.Name == account }
	if len(subjects) == 0 || slices.ContainsFunc(subjects, at) {
		return nil
	}
	there := subjects[0]
	return []Finding{broken(fmt.Sprintf("Shipper is not set up as %s/%s, but as %s/%s", namespace, account, there.Namespace, there.Name),
		"what was looked for is not where it is", "shipperctl doctor"+installFlags(there.Namespace, there.Name))}
}

// installFlags are the flags for an installation in another namespace or under another account than usual.
func installFlags(namespace, account string) string {
	out := ""
	if namespace != shipper.SystemNamespace {
		out += " -n " + namespace
	}
	if account != shipper.ManagementServiceAccount {
		out += " --management-cluster-service-account " + account
	}
	return out
}

// setUpAgain is the command, with its flags, that repeats the set-up of this installation.
func (f *Fleet) setUpAgain(ctx context.Context) string {
	out := setUp + installFlags(f.Namespace, f.ServiceAccount)
	for _, folder := range []string{manifests.Webhook, manifests.Policy} {
		wanted, err := manifests.Objects(folder)
		if err != nil {
			return out
		}
		for _, want := range wanted {
			live, err := f.live(ctx, want)
			if err != nil || live == nil {
				continue
			}
			for _, flag := range flagsOf(live) {
				if !strings.Contains(out, flag) {
					out += flag
				}
			}
		}
	}
	return out
}

func flagsOf(live *unstructured.Unstructured) []string {
	if namespace, found, _ := unstructured.NestedString(live.Object, "spec", "paramRef", "namespace"); found &&
		namespace != shipper.GlobalBlocksNamespace {
		return []string{" -g " + namespace}
	}
	if base := WebhookURL(live); base != nil {
		return []string{" --webhook-url " + base.String()}
	}
	return nil
}

// WebhookURL is the --webhook-url that a configuration was set up with; nil if it uses a Service.
func WebhookURL(configuration *unstructured.Unstructured) *url.URL {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		text, _, _ := unstructured.NestedString(webhook, "clientConfig", "url")
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			u.Path, _, _ = reviewpath.Split(u.Path)
			return u
		}
	}
	return nil
}

// advise replaces the bare set-up command by one with flags.
func advise(checks []Check, command string) []Check {
	for i := range checks {
		for j := range checks[i].Findings {
			f := &checks[i].Findings[j]
			f.Do = strings.ReplaceAll(f.Do, setUp, command)
		}
	}
	return checks
}
