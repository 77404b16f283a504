// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Check measures how a Release does, and says which values are good. Steps and strategies name Checks of their namespace, or those of the
// namespace that all share (shipper-checks). A rollout goes on only if its checks have passed. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=checks,shortName=chk,categories={shipper}
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.interval`
// +kubebuilder:printcolumn:name="Over",type=string,JSONPath=`.spec.over`
// +kubebuilder:printcolumn:name="Pass",type=string,JSONPath=`.spec.pass`
// +kubebuilder:printcolumn:name="Fail",type=string,priority=1,JSONPath=`.spec.fail`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Check struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is measured, how often, and which values are good.
	Spec CheckSpec `json:"spec"`
}

// CheckSpec says what is measured, how often, and which values are good.
//
// +kubebuilder:validation:XValidation:rule="(has(self.prometheus) ? 1 : 0) + (has(self.http) ? 1 : 0) + (has(self.tests) ? 1 : 0) + (has(self.job) ? 1 : 0) == 1",message="give one way to measure: prometheus, http, tests or job"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || has(self.tests) || has(self.job) || duration(self.timeout) <= duration('30s') && duration(self.timeout) <= (has(self.interval) ? duration(self.interval) : duration('1m'))",message="timeout must be at most interval, and at most 30s"
// +kubebuilder:validation:XValidation:rule="!(has(self.tests) || has(self.job)) || !(has(self.pass) || has(self.fail) || has(self.count) || has(self.over) || has(self.noData) || has(self.failureLimit))",message="tests and job run once in each cluster, and pass when they succeed: leave pass, fail, count, over, noData and failureLimit out"
// +kubebuilder:validation:XValidation:rule="!has(self.tests) || !has(self.initialDelay) && !has(self.timeout)",message="tests begin when the step has what it wants, and each has a time of its own: leave initialDelay and timeout out"
// +kubebuilder:validation:XValidation:rule="!has(self.http) || !has(self.over) || self.over == 'Cluster'",message="over Fleet is for prometheus: an http server is asked in each cluster"
type CheckSpec struct {
	// args are the values that a step gives to this Check. $(NAME) in queries, URLs, bodies and a Job is replaced by them; expressions read
	// args.NAME. Predefined are app, namespace, release, incumbent, cluster, region, step and elapsed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Args []CheckArgument `json:"args,omitempty"`

	// interval between two measurements, 5s to 24h. Absent means 1m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="must be from 5s to 24h"
	Interval Duration `json:"interval,omitempty"`

	// initialDelay is how long after the step has what it wants the first measurement is made. Absent means at once.
	// +optional
	InitialDelay Duration `json:"initialDelay,omitempty"`

	// timeout of one measurement, at most interval and 30s. Of a job it is its activeDeadlineSeconds, unless it has that, at most 24h. Absent
	// means 10s or the interval if that is shorter, and 10m for a job. Not with tests, each of which has a time of its own.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`

	// count is the number of measurements that have to pass or fail. Absent means as many as fit into the step's after, and at least 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count,omitempty"`

	// failureLimit is the number of failed measurements that do not fail the check. Absent means 0: the first one fails it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// inconclusiveLimit is the number of measurements without a verdict that are made again before the check is undecided. Absent means 0:
	// the first one makes it undecided.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	InconclusiveLimit int32 `json:"inconclusiveLimit,omitempty"`

	// consecutiveErrorLimit is the number of measurements one after another that may give no value, as when the server is down or has no
	// data, before the check is undecided. Absent means 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ConsecutiveErrorLimit *int32 `json:"consecutiveErrorLimit,omitempty"`

	// noData is what an empty answer or NaN means: Inconclusive, Pass or Fail. Absent means that the measurement gave no value, as when the
	// server is down: Pods that have just begun to serve have no rates yet.
	// +optional
	NoData CheckNoData `json:"noData,omitempty"`

	// over is Cluster: every cluster is judged by its own values, and all must pass; or Fleet: queries give lists with a value of each
	// cluster, and are judged once. Absent means Cluster.
	// +optional
	Over CheckOver `json:"over,omitempty"`

	// prometheus measures by queries.
	// +optional
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`

	// http measures by a request.
	// +optional
	HTTP *HTTPCheck `json:"http,omitempty"`

	// tests runs tests of the chart (helm.sh/hook: test), once in each cluster.
	// +optional
	Tests *TestsCheck `json:"tests,omitempty"`

	// job is the spec of a batch/v1 Job that is run once in each cluster, in the Application's namespace. Absent there, backoffLimit is 0 and
	// restartPolicy Never.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Job *runtime.RawExtension `json:"job,omitempty"`

	// pass is a CEL expression that is true for good values: each query is a double (with over Fleet a list of doubles), response.status
	// and response.json are what an http server answered, and args has the arguments. Without fail, anything else has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Pass string `json:"pass,omitempty"`

	// fail is a CEL expression that is true for bad values. Without pass, anything else is good. With both, a value that neither is true
	// for has no verdict. Without both, http passes when the status is 200 to 299; prometheus needs one of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Fail string `json:"fail,omitempty"`
}

// CheckArgument is a value that a step gives to a Check.
type CheckArgument struct {
	// name of the argument.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z][a-zA-Z0-9_]{0,62}$`
	Name string `json:"name"`

	// default is the value where a step gives none. Absent: every step has to give one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Default *string `json:"default,omitempty"`

	// pattern is an RE2 expression that the whole value has to match. Absent means ^[A-Za-z0-9._:/-]{0,253}$, with which a value cannot
	// leave its place in a query.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Pattern string `json:"pattern,omitempty"`
}

// CheckNoData is what an empty answer means.
// +kubebuilder:validation:Enum=Inconclusive;Pass;Fail
type CheckNoData string

// The values of CheckNoData.
const (
	NoDataInconclusive CheckNoData = "Inconclusive"
	NoDataPass         CheckNoData = "Pass"
	NoDataFail         CheckNoData = "Fail"
)

// CheckOver says over what a Check is judged.
// +kubebuilder:validation:Enum=Cluster;Fleet
type CheckOver string

// The values of CheckOver.
const (
	OverCluster CheckOver = "Cluster"
	OverFleet   CheckOver = "Fleet"
)

// PrometheusCheck measures by queries.
type PrometheusCheck struct {
	// address is the URL of a Prometheus server. The flag --outgoing-urls must list it. Absent: each cluster's own, from
	// Cluster.spec.metrics.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address,omitempty"`

	// secretName is the Secret of the Check's namespace with credentials for address: username and password, or token; ca.crt; tls.crt and
	// tls.key. A user who changes any field of the Check must be allowed to get it. Only with address.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// queries in PromQL by the name that expressions use. Each has to give one value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=5
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][a-zA-Z0-9_]{0,30}$') && !(k in ['args', 'response', 'true', 'false', 'null', 'in']))",message="a query's name is a letter, then letters, digits or _, and not args or response"
	Queries map[string]CheckQuery `json:"queries"`
}

// CheckQuery is a query in PromQL.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type CheckQuery string

// HTTPCheck measures by a request.
type HTTPCheck struct {
	// url to request, http or https. The flag --outgoing-urls must list it. Arguments may be in its path and query, not in its host.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// method is GET or POST. Absent means GET.
	// +optional
	Method CheckMethod `json:"method,omitempty"`

	// headers of the request. Credentials belong into a Secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Headers map[string]string `json:"headers,omitempty"`

	// body of a POST, JSON. Arguments may be in its strings.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Body string `json:"body,omitempty"`

	// secretName is the Secret of the Check's namespace with credentials, as of prometheus.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// CheckMethod is the method of a request.
// +kubebuilder:validation:Enum=GET;POST
type CheckMethod string

// TestsCheck runs tests of the chart.
type TestsCheck struct {
	// names of the objects of the chart that are its tests (helm.sh/hook: test). Absent means all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`
}

// CheckList is a list of Checks.
//
// +kubebuilder:object:root=true
type CheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Check `json:"items"`
}
