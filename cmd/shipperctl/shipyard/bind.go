// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func newBind(o *options) *cobra.Command {
	var apply bool
	account := client.ObjectKey{}
	cmd := &cobra.Command{
		Use:   "bind SHIPYARD|NAMESPACE",
		Short: "Print the commands that bind the ServiceAccount of a Shipyard to Shipper, and its rights to that account",
		Long: "Print the commands that bind the ServiceAccount that runs of a Shipyard, or of all of a namespace, write with to Shipper:\n" +
			"the account, the right of Shipper to use it, and its rights in the namespace of each stage. The owner of each namespace runs the\n" +
			"commands for it, and revokes the rights by deleting the RoleBinding. With --apply they are done; what is there already stays.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, namespace, err := o.Client()
			if err != nil {
				return err
			}
			c, err := o.ClientFor(shipper.AddToScheme, clientgoscheme.AddToScheme)
			if err != nil {
				return err
			}
			found, err := shipyardsOf(cmd.Context(), c, namespace, args[0])
			if err != nil {
				return err
			}
			objects := bindingsOf(found, account)
			if !apply {
				for _, object := range objects {
					fmt.Fprintln(cmd.OutOrStdout(), command(object))
				}
				return nil
			}
			return create(cmd.Context(), c, objects, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "create the account and the RoleBindings")
	cmd.Flags().StringVar(&account.Namespace, "system-namespace", shipper.SystemNamespace, "namespace Shipper runs in")
	cmd.Flags().StringVar(&account.Name, "management-cluster-service-account", shipper.ManagementServiceAccount,
		"name of the service account Shipper uses in the management cluster")
	return cmd
}

// shipyardsOf are the Shipyard that an argument names or, if there is none, those of the namespace that it names.
func shipyardsOf(ctx context.Context, c client.Reader, namespace, arg string) ([]shipper.Shipyard, error) {
	key := keyOf(namespace, arg, shipyardKinds)
	one := &shipper.Shipyard{}
	err := c.Get(ctx, key, one)
	if err == nil {
		return []shipper.Shipyard{*one}, nil
	}
	if !apierrors.IsNotFound(err) || key.Name != arg {
		return nil, fmt.Errorf("reading shipyard %s: %w", key, err)
	}
	var list shipper.ShipyardList
	if err := c.List(ctx, &list, client.InNamespace(arg)); err != nil {
		return nil, fmt.Errorf("listing the shipyards of namespace %s: %w", arg, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("there is no shipyard %s, and none in a namespace %s", key, arg)
	}
	return list.Items, nil
}

// bindingsOf are the objects that bind the accounts of Shipyards to Shipper's account. It is pure.
func bindingsOf(shipyards []shipper.Shipyard, account client.ObjectKey) []client.Object {
	accounts := map[client.ObjectKey]map[string]bool{} // with the namespaces of their stages
	for i := range shipyards {
		of := &shipyards[i]
		runner := client.ObjectKey{Namespace: of.Namespace, Name: cmp.Or(of.Spec.ServiceAccountName, shipper.DefaultRunner)}
		if accounts[runner] == nil {
			accounts[runner] = map[string]bool{}
		}
		for j := range of.Spec.Stages {
			if writes(&of.Spec.Stages[j]) {
				accounts[runner][cmp.Or(of.Spec.Stages[j].Namespace, of.Namespace)] = true
			}
		}
	}
	var out []client.Object
	order := func(a, b client.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	bound := map[string]bool{}
	for _, runner := range slices.SortedFunc(maps.Keys(accounts), order) {
		out = append(out, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: runner.Namespace, Name: runner.Name}})
		if !bound[runner.Namespace] { // the binding is for all accounts of the namespace
			bound[runner.Namespace] = true
			out = append(out, binding(runner.Namespace, shipper.RunnerImpersonatorRole, shipper.RunnerImpersonatorRole, account))
		}
		for _, namespace := range slices.Sorted(maps.Keys(accounts[runner])) {
			out = append(out, binding(namespace, shipper.RunnerBinding(runner.Namespace, runner.Name), shipper.RunnerRole, runner))
		}
	}
	return out
}

// writes reports whether runs of a stage need rights in the namespace of its Applications.
func writes(stage *shipper.Stage) bool {
	return slices.ContainsFunc(stage.Sequences, func(s shipper.Sequence) bool { return rules.IsAboutApplication(&s) })
}

func binding(namespace, name, role string, account client.ObjectKey) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
}

// command is the kubectl command that creates an object of bindingsOf.
func command(object client.Object) string {
	if b, is := object.(*rbacv1.RoleBinding); is {
		return fmt.Sprintf("kubectl create rolebinding %s --clusterrole=%s --serviceaccount=%s:%s -n %s", b.Name, b.RoleRef.Name,
			b.Subjects[0].Namespace, b.Subjects[0].Name, b.Namespace)
	}
	return fmt.Sprintf("kubectl create serviceaccount %s -n %s", object.GetName(), object.GetNamespace())
}

// create creates what is missing of bindingsOf.
func create(ctx context.Context, c client.Client, objects []client.Object, out io.Writer) error {
	for _, object := range objects {
		title := fmt.Sprintf("serviceaccount %s/%s", object.GetNamespace(), object.GetName())
		wanted, isBinding := object.(*rbacv1.RoleBinding)
		if isBinding {
			title = fmt.Sprintf("rolebinding %s/%s of %s", object.GetNamespace(), object.GetName(), wanted.RoleRef.Name)
		}
		err := c.Create(ctx, object)
		switch {
		case err == nil:
			fmt.Fprintln(out, title+" is created")
			continue
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("creating %s: %w; its owner can run: %s", title, err, command(object))
		}
		if isBinding {
			there := &rbacv1.RoleBinding{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
				return fmt.Errorf("reading %s: %w", title, err)
			}
			if there.RoleRef != wanted.RoleRef || !apiequality.Semantic.DeepEqual(there.Subjects, wanted.Subjects) {
				return fmt.Errorf("%s is there, and is for others: look at it, then delete it, and run this again", title)
			}
		}
		fmt.Fprintln(out, title+" is there already")
	}
	return nil
}
