// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

func newSetupManagement(o *options) *cobra.Command {
	var globalBlocks, serviceAccount, webhookURL, certificates string
	var placements []string
	cmd := &cobra.Command{
		Use:   "management",
		Short: "Set up the management cluster: kinds, namespaces, account, rights, webhooks",
		Long: "Set up the management cluster: kinds, namespaces, account, rights, webhooks. Of an installation that is there already,\n" +
			"what no flag names stays as it is: namespace, account, namespace of global blocks, URL, CA bundle and failurePolicy of the\n" +
			"webhooks. The Deployment is not touched.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := install.ParseWebhookURL(webhookURL)
			mode, wrong := install.ParseCertificates(certificates)
			if err = errors.Join(err, wrong, checkPlacements(placements)); err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			config, err := o.Management()
			if err != nil {
				return err
			}
			client, err := install.NewClient(config)
			if err != nil {
				return err
			}
			m := install.Management{
				Client: client, Report: install.NewReport(cmd.OutOrStdout()),
				Namespace: o.Namespace, GlobalBlocksNamespace: globalBlocks, ServiceAccount: serviceAccount,
				WebhookURL: url, Certificates: mode, WebhookIgnore: o.webhookIgnore, Patience: o.timeout, Clock: o.clock,
				Placements: placements,
			}
			named := cmd.Flags().Changed
			err = m.KeepInstalled(cmd.Context(), install.Named{
				Namespace: named("namespace"), ServiceAccount: named("management-cluster-service-account"),
				GlobalBlocksNamespace: named("rollout-blocks-global-namespace"), WebhookURL: named("webhook-url"),
			})
			if err != nil {
				return err
			}
			return m.Setup(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&globalBlocks, "rollout-blocks-global-namespace", "g", shipper.GlobalBlocksNamespace,
		"namespace whose RolloutBlocks stop rollouts in every namespace")
	flags.StringVar(&serviceAccount, "management-cluster-service-account", shipper.ManagementServiceAccount,
		"name of the service account Shipper uses in the management cluster")
	flags.StringVar(&webhookURL, "webhook-url", "",
		"base URL of a webhook that runs outside the cluster, for example https://localhost:9443; no Service is made. "+
			"An empty one means the Service again (default that of the installation)")
	flags.StringVar(&certificates, "certificates", "",
		"where the webhook's certificate comes from: self, made by the webhook, or cert-manager, whose Issuers and Certificates are "+
			"created and awaited. Empty: nothing of it is changed")
	flags.StringSliceVar(&placements, "placements", nil,
		"namespaces whose objects, Secrets included, Shipper may read in order to place them, and where it may keep Secrets of what it "+
			"places; '*': read all objects of all namespaces and of none. The namespaces must exist. No binding is ever removed "+
			"(default: nothing of it is changed)")
	return cmd
}

func newJoin(o *options) *cobra.Command {
	var path, serviceAccount string
	var lifetime time.Duration
	var g guarding
	var p placing
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Join the application clusters of a clusters.yaml to the management cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.asked, p.asked = cmd.Flags().Changed("guard"), cmd.Flags().Changed("placements")
			if err := g.check(cmd.Flags().Changed("guard-break-glass-group")); err != nil {
				return err
			}
			if lifetime != 0 && lifetime < credential.ShortestLife {
				return cli.WithCode(cli.Misused, fmt.Errorf("--token-lifetime is %s: API servers let tokens live for %s at least; 0 asks for one "+
					"that does not end", lifetime, credential.ShortestLife))
			}
			file, err := readFile(path)
			if err != nil {
				return err
			}
			j := joiner{
				options: o, serviceAccount: serviceAccount, lifetime: lifetime, guarding: g, placing: p,
				report: install.NewReport(cmd.OutOrStdout()),
			}
			return j.join(cmd.Context(), file)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&path, "file", "f", "clusters.yaml", "path to the YAML file that lists the clusters")
	flags.StringVar(&serviceAccount, "application-cluster-service-account", shipper.ApplicationServiceAccount,
		"name of the service account Shipper uses in application clusters")
	flags.DurationVar(&lifetime, "token-lifetime", 24*time.Hour,
		"lifetime of tokens; Shipper renews them after a quarter of that, and you need to join again only if it fails to for the "+
			"rest. 0 makes one that does not end, for all management clusters")
	flags.BoolVar(&g.on, "guard", false,
		"install policies in application clusters that refuse edits by others to what Shipper owns; --guard=false removes them "+
			"(default: an existing guard stays)")
	flags.BoolVar(&p.on, "placements", false,
		"let Shipper write Namespaces, ResourceQuotas and LimitRanges in application clusters, as placements of Namespaces need; every "+
			"tenant that may write Applications can do that then. --placements=false takes it back (default: nothing of it is changed)")
	flags.StringVar(&g.group, "guard-break-glass-group", install.BreakGlassGroup,
		"group of users that the guard exempts, with --guard")
	return cmd
}

// joiner joins every application cluster of a file to every management cluster of it.
type joiner struct {
	*options
	serviceAccount string
	lifetime       time.Duration
	guarding       guarding
	placing        placing
	report         *install.Report

	management   []manager
	applications []member
}

type manager struct {
	install.Management
	name string // empty when the file names none
}

type member struct {
	install.Application
	spec     shipper.ClusterSpec
	loopback bool
}

// join checks everything before it writes anything.
func (j *joiner) join(ctx context.Context, file *File) error {
	if err := errors.Join(j.findManagement(file), j.findApplications(file)); err != nil {
		return err
	}
	if err := j.guarding.possible(ctx, j.applications); err != nil {
		return err
	}
	for _, m := range j.management {
		if err := m.Ready(ctx); err != nil {
			return m.failed(err)
		}
		if m.WebhookIgnore {
			if err := m.SetFailurePolicy(ctx); err != nil {
				return m.failed(err)
			}
		}
	}
	for _, a := range j.applications {
		if err := j.joinOne(ctx, a); err != nil {
			return fmt.Errorf("joining cluster %s: %w", a.Name, err)
		}
	}
	for _, m := range j.management {
		if m.WebhookIgnore {
			continue
		}
		if err := m.EnforceWebhooks(ctx); err != nil {
			return m.failed(err)
		}
	}
	return nil
}

func (j *joiner) joinOne(ctx context.Context, a member) error {
	holders := make([]install.Holder, len(j.management))
	for i, m := range j.management {
		var err error
		if holders[i], err = m.Holder(ctx, a.Name); err != nil {
			return m.failed(err)
		}
		if len(j.management) > 1 {
			holders[i].Name = m.name
		}
	}
	credentials, err := a.Account(ctx, holders)
	if err != nil {
		return err
	}
	if err := j.placing.do(ctx, a); err != nil {
		return err
	}
	for i, m := range j.management {
		who := "management cluster"
		if len(j.management) > 1 {
			who += " " + m.name
		}
		j.report.Printf("Joining %s to application cluster %s:", who, a.Name)
		if err := m.Join(ctx, a.Name, a.spec, credentials[i]); err != nil {
			return m.failed(err)
		}
		if a.loopback {
			j.report.Printf("Note: %s is an address of this machine only; set apiMaster to one that Shipper can reach",
				a.spec.APIMaster)
		}
		j.report.Printf("Finished joining %s to application cluster %s\n", who, a.Name)
	}
	return j.guarding.do(ctx, a)
}

// failed names the management cluster in err, if there are several.
func (m manager) failed(err error) error {
	if m.name == "" {
		return err
	}
	return fmt.Errorf("management cluster %s: %w", m.name, err)
}

// findManagement connects to the management clusters: the one of the flag, else those of the file, else the current
// one.
func (j *joiner) findManagement(file *File) error {
	listed := file.Management
	if j.Context != "" || len(listed) == 0 {
		listed = []ManagementCluster{{Context: j.Context}}
	}
	for _, l := range listed {
		config, err := j.Config(l.Context)
		if err != nil {
			return err
		}
		client, err := install.NewClient(config)
		if err != nil {
			return err
		}
		j.management = append(j.management, manager{name: l.Name, Management: install.Management{
			Client: client, Report: j.report, Namespace: j.Namespace, WebhookIgnore: j.webhookIgnore, Patience: j.timeout,
		}})
	}
	return nil
}

func (j *joiner) findApplications(file *File) error {
	var problems []error
	for _, l := range file.Applications {
		a, err := j.findApplication(l)
		problems = append(problems, err)
		j.applications = append(j.applications, a)
	}
	return errors.Join(problems...)
}

// findApplication connects to one application cluster and completes its entry in the file.
func (j *joiner) findApplication(l ApplicationCluster) (member, error) {
	if slices.Contains(install.ReservedSecrets(j.serviceAccount), l.Name) {
		return member{}, fmt.Errorf("cluster %s cannot have this name: a Secret of Shipper's own has it", l.Name)
	}
	config, err := j.Config(l.Context)
	if err != nil {
		return member{}, fmt.Errorf("cluster %s: %w", l.Name, err)
	}
	client, err := install.NewClient(config)
	if err != nil {
		return member{}, fmt.Errorf("cluster %s: %w", l.Name, err)
	}
	ca, err := authority(config)
	if err != nil {
		return member{}, fmt.Errorf("cluster %s: %w", l.Name, err)
	}
	a := member{spec: l.Spec, Application: install.Application{
		Client: client, Report: j.report, Name: l.Name, Namespace: j.Namespace,
		ServiceAccount: j.serviceAccount, CA: ca,
		TokenLifetime: j.lifetime, Clock: j.clock, Patience: j.timeout,
	}}
	if a.spec.APIMaster == "" {
		a.spec.APIMaster = config.Host
		a.loopback = loopback(config.Host)
	}
	a.Elsewhere = a.spec.APIMaster != config.Host
	return a, nil
}

func authority(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	return ca, nil
}

// loopback reports whether a server's URL is an address of the machine it is used on.
func loopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// guarding has the flags about the guard of application clusters.
type guarding struct {
	asked bool   // --guard was given; without it, an existing guard stays
	on    bool   // its value
	group string // the guard exempts its members
}

func (g *guarding) check(named bool) error {
	if named && !g.on {
		return cli.WithCode(cli.Misused, errors.New("--guard-break-glass-group is for the guard: give --guard as well"))
	}
	var err error
	g.group, err = install.ParseBreakGlassGroup(g.group)
	return cli.WithCode(cli.Misused, err)
}

// possible returns an error that names the clusters without support for the guard. It writes nothing.
func (g guarding) possible(ctx context.Context, members []member) error {
	if !g.on {
		return nil
	}
	var problems []error
	for _, m := range members {
		problems = append(problems, m.CanGuard(ctx))
	}
	return errors.Join(problems...)
}

// do installs, removes or keeps the guard of one cluster, whose accounts are there.
func (g guarding) do(ctx context.Context, m member) error {
	switch {
	case !g.asked:
		return m.KeepGuard(ctx)
	case g.on:
		return m.Guard(ctx, g.group)
	default:
		return m.Unguard(ctx)
	}
}
