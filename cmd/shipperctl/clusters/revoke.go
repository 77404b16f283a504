// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

func newRevoke(o *options) *cobra.Command {
	r := revoker{options: o}
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Make the token that Shipper has for a cluster void, and all that it was renewed from or to",
		Long: "Make the token that Shipper has for a cluster void, at once and for everyone who has read it: its object in that\n" +
			"cluster is deleted. The cluster is asked with its context, if the kubeconfig has one by the name of the cluster, the one in\n" +
			"clusters.yaml with --file, or the one of --application-cluster-context; otherwise with the token itself.\n" +
			"Pods in the cluster keep running. `clusters join` makes another token.\n\n" +
			"A thief may have used the token to request others of its account: --account deletes the account\n" +
			"with all of them, those of other management clusters too.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.report = install.NewReport(cmd.OutOrStdout())
			return r.revoke(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.context, "application-cluster-context", "",
		"context of the cluster whose token is revoked (default the one by its name, if there is one)")
	flags.StringVarP(&r.file, "file", "f", "", "path to the YAML file that lists the clusters, for the cluster's context")
	flags.BoolVar(&r.account, "account", false,
		"delete the account in the cluster: every token of it is void, also those of other management clusters")
	flags.DurationVar(&o.timeout, "timeout", install.DefaultPatience, "how long to wait until the cluster refuses the token")
	return cmd
}

type revoker struct {
	*options
	context, file string
	account       bool
	report        *install.Report
}

// revoke voids the token, and marks the Secret of the management cluster as revoked.
func (r *revoker) revoke(ctx context.Context, name string) error {
	c, cluster, err := r.read(ctx, name)
	if err != nil {
		return err
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: r.Namespace, Name: name}
	if err := c.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	access, err := fleet.NewAccess(cluster, secret, key.String())
	var known *fleet.Error
	if errors.As(err, &known) && known.Reason == shipper.CredentialsRevoked {
		r.report.Printf("nothing to revoke: %s", known.Message)
		return nil
	}
	holds := credential.Read(secret)
	if holds.Kind != credential.NoKind {
		if err := revocable(name, key, holds, r.account); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("nothing is revoked: %w", err)
	}
	if err := r.void(ctx, name, access, holds); err != nil {
		return err
	}
	title := fmt.Sprintf("Taking it out of the Secret %s of the management cluster", key)
	err = r.report.Step(title, func() (string, error) {
		was := secret.DeepCopy()
		install.Revoked(secret, r.clock.Now().UTC().Format(time.RFC3339))
		return "done", c.Patch(ctx, secret, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return err
	}
	r.report.Printf("Shipper cannot work with cluster %s any more; Pods there keep running. "+
		"`shipperctl clusters join` makes another token", name)
	return nil
}

// void deletes the object that the token is bound to, and waits until the cluster refuses the token.
func (r *revoker) void(ctx context.Context, name string, access *fleet.Access, known credential.Credential) error {
	config, by, err := r.reach(name, access)
	if err != nil {
		return err
	}
	target, err := install.NewClient(config)
	if err != nil {
		return fmt.Errorf("connecting to cluster %s: %w", name, err)
	}
	r.report.Printf("Revoking the token of cluster %s, %s:", name, by)
	v := install.Revocation{
		Client: target, Report: r.report, Credential: known, Token: access.Config.BearerToken, Own: config == access.Config, Account: r.account,
	}
	if err := v.Delete(ctx); err != nil {
		return err
	}
	return v.AwaitRefusal(ctx, config, r.clock, r.timeout)
}

// revocable returns an error, with what to do instead, for credentials that cannot be revoked.
func revocable(cluster string, secret client.ObjectKey, c credential.Credential, account bool) error {
	another := fmt.Sprintf("To use a token that can be revoked: kubectl delete secret %s -n %s, then `shipperctl clusters join`",
		secret.Name, secret.Namespace)
	end := "it is not known when it ends"
	if c.Ends() {
		end = "it ends at " + c.NotAfter.Format(time.RFC3339)
	}
	switch {
	case c.Kind == credential.Certificate:
		return fmt.Errorf("the client certificate of cluster %s cannot be revoked, by anybody: API servers have no list of revoked "+
			"certificates, and %s. Take away what its user may do: delete the bindings of its name and groups in that cluster, or "+
			"replace the authority that has signed it. %s", cluster, end, another)
	case c.Account.Name == "":
		return fmt.Errorf("the token of cluster %s was not given to a ServiceAccount by that cluster, and %s: revoke it where it comes from. %s",
			cluster, end, another)
	case c.Account.Secret == "" && !account:
		return fmt.Errorf("the token of cluster %s is bound to nothing that could be deleted, and %s. --account deletes the account %s/%s in "+
			"that cluster, with all its tokens", cluster, end, c.Account.Namespace, c.Account.Name)
	}
	return nil
}

// reach connects to the application cluster: with a context if there is one, otherwise with the token to be revoked.
func (r *revoker) reach(name string, access *fleet.Access) (config *rest.Config, by string, err error) {
	context := r.context
	if context == "" && r.file != "" {
		if context, err = r.listed(name); err != nil {
			return nil, "", err
		}
	}
	if context == "" {
		if _, err := r.Config(name); err == nil {
			context = name
		}
	}
	if context == "" {
		return access.Config, "with the token itself", nil
	}
	config, err = r.Config(context)
	if err != nil {
		return nil, "", fmt.Errorf("cluster %s: %w", name, err)
	}
	return config, "with the context " + context, nil
}

// listed is the context of a cluster in a clusters.yaml.
func (r *revoker) listed(name string) (string, error) {
	file, err := readFile(r.file)
	if err != nil {
		return "", err
	}
	for _, a := range file.Applications {
		if a.Name == name {
			return a.Context, nil
		}
	}
	return "", fmt.Errorf("%s lists no cluster %s", r.file, name)
}
