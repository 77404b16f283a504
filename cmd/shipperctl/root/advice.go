// SPDX-License-Identifier: Apache-2.0

package root

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// advise has a command and those below it say what can be done about an error, where that is known and not said yet.
func advise(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if advice := adviceFor(err, cmd.Root().DisplayName()); advice != "" {
				return fmt.Errorf("%w\n%s", err, advice)
			}
			return err
		}
	}
	for _, below := range cmd.Commands() {
		advise(below)
	}
}

// listing says how the objects of a kind are listed.
var listing = map[string]string{
	"applications":  "`kubectl get app -A` lists those there are; -n says in which namespace it is",
	"releases":      "`%s list release` lists those there are; -n says in which namespace it is",
	"clusters":      "`%s clusters list` lists those there are",
	"rolloutblocks": "`%s block list -A` lists those there are; NAMESPACE/NAME or -n says in which namespace it is",
}

// adviceFor is pure. The name is that of the command line. What has several lines says already what to do.
func adviceFor(err error, name string) string {
	if err == nil || strings.Contains(err.Error(), "\n") {
		return ""
	}
	var dial *net.OpError
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted: run it again to go on"
	case strings.Contains(text, "failed calling webhook"):
		return "Shipper's webhook does not answer: `" + name + " doctor` says what is broken"
	case meta.IsNoMatchError(err), strings.Contains(text, "the server could not find the requested resource"):
		return "this management cluster is not set up, or your context points to another one: look at `kubectl config current-context`, " +
			"or run `" + name + " clusters setup management`"
	case apierrors.IsNotFound(err):
		if how := listing[kindOf(err)]; strings.Contains(how, "%s") {
			return fmt.Sprintf(how, name)
		} else if !strings.Contains(text, "choose with -n") {
			return how
		}
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot "):
		return "ask an administrator for the right, or for a role that has it: shipper:view to look, shipper:edit to roll out, shipper:sre " +
			"for blocks; clusters are an administrator's"
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept the credentials of this context: log in again, or choose another with --context"
	case errors.As(err, &dial):
		return "the API server cannot be reached from here: look whether it is up, and whether the context is the one that you mean (--context)"
	}
	return ""
}

// kindOf is the kind of object, in the plural, that an API server has not found.
func kindOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Kind
	}
	return ""
}
