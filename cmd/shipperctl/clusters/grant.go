// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

const (
	// maxGrants bounds the objects of one command, so that a person reads what they grant.
	maxGrants = 20
	// maxReason bounds the reason, in bytes.
	maxReason = 256
)

func newGrant(o *options) *cobra.Command {
	g := granter{options: o}
	var path, rules string
	cmd := &cobra.Command{
		Use:   "grant RESOURCE/NAME...",
		Short: "Let Shipper place objects without a namespace, such as ClusterRoles, by name",
		Long: "Let Shipper place objects without a namespace, such as ClusterRoles and webhook configurations, by name. Your own rights in\n" +
			"the clusters decide what you can grant. A user who places such an object with an Application needs the verb `place` on it\n" +
			"as well; charts cannot use a grant.\n\n" +
			"Shipper may then create, change and delete the object of that name with any content that the API server accepts. The\n" +
			"granted ClusterRoles and ClusterRoleBindings of a cluster may give the rights in --rules. These add up: each of them may\n" +
			"give the rights of all grants of the cluster. A webhook configuration or an admission policy changes every request to the\n" +
			"cluster: grant its name only if its authors are administrators of the cluster.\n\n" +
			"Each role that is written has the label " + shipper.GrantLabel + ", and who granted it, when and why in annotations.",
		Example: "  shipperctl clusters grant clusterroles.rbac.authorization.k8s.io/monitoring --rules monitoring.yaml --reason OPS-12",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if g.objects, err = parseGrants(args); err == nil {
				err = checkReason(g.reason, g.remove)
			}
			if err == nil && rules != "" {
				g.rules, err = readRules(cmd.InOrStdin(), rules)
			}
			if err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			file, err := readFile(path)
			if err != nil {
				return err
			}
			g.report = install.NewReport(cmd.OutOrStdout())
			return g.run(cmd.Context(), file)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&path, "file", "f", "clusters.yaml", "path to the YAML file that lists the clusters")
	flags.StringSliceVar(&g.only, "clusters", nil, "`names` of the clusters of the file to grant in (default: all)")
	flags.StringVar(&rules, "rules", "", "`file` with ClusterRoles, or - for standard input: the rights that the granted roles and bindings "+
		"of the cluster may give. You need these rights yourself. Rights to grant rights, and '*', are refused")
	flags.StringVar(&g.reason, "reason", "", "why, as the roles record it; 256 bytes at most. Required, but for --remove")
	flags.BoolVar(&g.remove, "remove", false, "remove the grants, and the rights in their --rules; placed objects stay, and Shipper no "+
		"longer changes them")
	flags.StringVar(&g.serviceAccount, "application-cluster-service-account", shipper.ApplicationServiceAccount,
		"name of the service account Shipper uses in application clusters")
	return cmd
}

// granter grants objects in the clusters of a file.
type granter struct {
	*options
	objects        []install.Granted
	rules          []rbacv1.PolicyRule
	reason         string
	remove         bool
	only           []string
	serviceAccount string
	report         *install.Report
}

// run checks all clusters before it writes to the first.
func (g *granter) run(ctx context.Context, file *File) error {
	chosen, err := choose(file.Applications, g.only)
	if err != nil {
		return cli.WithCode(cli.Misused, err)
	}
	if err := g.joined(ctx, chosen); err != nil {
		return err
	}
	var members []install.Application
	var problems []error
	for _, one := range chosen {
		a, err := g.member(one)
		problems = append(problems, err)
		members = append(members, a)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for i := range members {
		a := &members[i]
		g.report.Printf("Cluster %s:", a.Name)
		do := func() error { return a.Grants(ctx, g.objects, g.rules, g.reason) }
		if g.remove {
			do = func() error { return a.NoGrants(ctx, g.objects) }
		}
		if err := do(); err != nil {
			return fmt.Errorf("cluster %s: %w", a.Name, err)
		}
	}
	return nil
}

// joined refuses to grant in a cluster that the management cluster does not know. One that has left may still have grants to take back.
func (g *granter) joined(ctx context.Context, all []ApplicationCluster) error {
	if g.remove {
		return nil
	}
	var problems []error
	for _, one := range all {
		_, _, err := g.read(ctx, one.Name)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("cluster %s has not joined: run `shipperctl clusters join` first, or name others with --clusters", one.Name)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// member connects to a cluster, and checks that it serves what is granted.
func (g *granter) member(of ApplicationCluster) (install.Application, error) {
	fail := func(err error) (install.Application, error) {
		return install.Application{}, fmt.Errorf("cluster %s: %w", of.Name, err)
	}
	config, err := g.Config(of.Context)
	if err != nil {
		return fail(err)
	}
	client, err := install.NewClient(config)
	if err != nil {
		return fail(err)
	}
	if !g.remove {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return fail(err)
		}
		_, lists, err := d.ServerGroupsAndResources()
		if err != nil && len(lists) == 0 {
			return fail(fmt.Errorf("listing the kinds that it serves: %w", err))
		}
		if err := checkServed(lists, g.objects); err != nil {
			return fail(err)
		}
	}
	return install.Application{
		Client: client, Report: g.report, Name: of.Name, Namespace: g.Namespace, ServiceAccount: g.serviceAccount, Clock: g.clock,
	}, nil
}

// choose returns the named clusters of a file; all if none are named.
func choose(all []ApplicationCluster, names []string) ([]ApplicationCluster, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []ApplicationCluster
	for _, name := range names {
		i := slices.IndexFunc(all, func(a ApplicationCluster) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--clusters: the file lists no cluster %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// ungrantable are ClusterRoles of Kubernetes itself. Others of its own have the prefix system:.
var ungrantable = []string{"cluster-admin", "admin", "edit", "view"}

// parseGrants reads objects as in clusterroles.rbac.authorization.k8s.io/monitoring.
func parseGrants(args []string) ([]install.Granted, error) {
	if len(args) > maxGrants {
		return nil, fmt.Errorf("%d objects are named: at most %d at a time", len(args), maxGrants)
	}
	var out []install.Granted
	for _, arg := range args {
		resource, name, found := strings.Cut(arg, "/")
		of := schema.ParseGroupResource(resource)
		problems := content.IsPathSegmentName(name)
		switch {
		case !found || of.Resource == "" || name == "":
			return nil, fmt.Errorf("%q is no object: want RESOURCE.GROUP/NAME, such as clusterroles.rbac.authorization.k8s.io/monitoring", arg)
		case strings.Contains(arg, "*"):
			return nil, fmt.Errorf("%q: a grant has a name, and no '*'", arg)
		case len(problems) > 0:
			return nil, fmt.Errorf("%q: the name %s", arg, strings.Join(problems, "; "))
		case strings.HasPrefix(name, "system:"), strings.HasPrefix(name, "shipper:"),
			of.Group == rbacv1.GroupName && slices.Contains(ungrantable, name), objects.IsOwnAdmission(of.Group, name):
			return nil, fmt.Errorf("%q: objects of Kubernetes and of Shipper are not granted: choose another name", arg)
		}
		out = append(out, install.Granted{GroupResource: of, Name: name})
	}
	return out, nil
}

func checkReason(reason string, remove bool) error {
	switch {
	case remove:
		return nil
	case strings.TrimSpace(reason) == "":
		return errors.New("--reason: say why, for those who review the grant later")
	case len(reason) > maxReason:
		return fmt.Errorf("--reason: is longer than %d bytes", maxReason)
	}
	return nil
}

// checkServed refuses kinds that a cluster does not serve, and those whose objects have a namespace.
func checkServed(lists []*metav1.APIResourceList, all []install.Granted) error {
	var problems []error
	for _, g := range all {
		known, namespaced := false, false
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil || gv.Group != g.Group {
				continue
			}
			for i := range list.APIResources {
				if r := &list.APIResources[i]; r.Name == g.Resource {
					known, namespaced = true, r.Namespaced
				}
			}
		}
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("%s: the API server serves no such resource: name it in the plural, with its group", g))
		case namespaced:
			problems = append(problems, fmt.Errorf("%s: objects of this kind have a namespace: grant the kind to Shipper's account with a "+
				"ClusterRole with the label %s", g, shipper.AggregateLabel))
		}
	}
	return errors.Join(problems...)
}
