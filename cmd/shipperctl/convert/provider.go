// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/convert/condition"
)

type prometheusProvider struct {
	Address string   `json:"address"`
	Query   string   `json:"query"`
	Timeout int64    `json:"timeout"`
	Headers []header `json:"headers"`
}

type webProvider struct {
	Method         string   `json:"method"`
	URL            string   `json:"url"`
	Headers        []header `json:"headers"`
	Body           string   `json:"body"`
	JSONBody       any      `json:"jsonBody"`
	TimeoutSeconds int64    `json:"timeoutSeconds"`
	JSONPath       string   `json:"jsonPath"`
}

type jobProvider struct {
	Metadata map[string]any `json:"metadata"`
	Spec     map[string]any `json:"spec"`
}

type header struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// resultName is the query that conditions are about.
const resultName = "result"

// Bounds of what is measured.
const (
	maxQuery   = 4096
	maxURL     = 2048
	maxBody    = 16384
	maxHeaders = 20
)

var (
	convertedPrometheus = []string{"address", "headers", "query", "timeout"}
	convertedWeb        = []string{"body", "headers", "jsonBody", "jsonPath", "method", "timeoutSeconds", "url"}
	convertedJob        = []string{"spec"}
	// unconvertedProvider has what to do instead of fields of providers.
	unconvertedProvider = map[string]string{
		"authentication": "is left out: name a Secret with a token, or with username and password, in secretName; for OAuth2 or SigV4 name a " +
			"proxy that signs",
		"insecure": "is left out: certificates are verified; put the CA into ca.crt of a Secret, and name it in secretName",
		"metadata": "is left out: Shipper names and labels the Job; write labels into its Pod template",
		"rangeQuery": "is left out, and the query gives its value of now: have it say the time, such as " +
			"avg_over_time((…)[5m:30s]), and one value",
	}
)

const (
	listAddress = "has to be listed in --outgoing-urls by the operator of Shipper; leave it out to ask the Prometheus of each cluster, " +
		"which Cluster.spec.metrics names"
	listURL = "has to be listed in --outgoing-urls by the operator of Shipper"
)

func (c *metricConversion) prometheus(spec *shipper.CheckSpec, from *prometheusProvider, raw map[string]any) bool {
	const field = "provider.prometheus"
	c.report.keys(raw, convertedPrometheus, unconvertedProvider, c.field+"."+field)
	query, ok := c.text(field+".query", strings.TrimSpace(from.Query), maxQuery)
	if !ok || query == "" {
		c.add(field+".query", "is not converted: the metric has no Check")
		return false
	}
	spec.Prometheus = &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{resultName: shipper.CheckQuery(query)}}
	if from.Address != "" {
		if spec.Prometheus.Address, ok = c.fixed(field+".address", from.Address); ok {
			c.add(field+".address", "%s %s", spec.Prometheus.Address, listAddress)
		} else {
			spec.Prometheus.Address = ""
		}
	}
	var headers map[string]string
	headers, spec.Prometheus.SecretName = c.headers(field, from.Headers)
	if len(headers) > 0 {
		c.add(field+".headers", "are left out: queries have the header of secretName only")
	}
	if spec.Prometheus.Address == "" && spec.Prometheus.SecretName != "" {
		c.add(field+".headers", "are left out: without address, Cluster.spec.metrics names the Secret")
		spec.Prometheus.SecretName = ""
	}
	c.timeout(spec, field+".timeout", from.Timeout)
	c.judge(spec, condition.Operand{CEL: resultName, Sample: true})
	return true
}

// headers converts headers. A token from a Secret in Authorization is the Secret that is returned.
func (c *metricConversion) headers(field string, from []header) (headers map[string]string, secret string) {
	for i, h := range from {
		at := fmt.Sprintf("%s.headers[%d]", field, i)
		if arg := c.args.find(bearer(h)); arg != nil && arg.secret != nil {
			if arg.secret.Key != "token" {
				c.add(at, "the Secret %s has the token in %s: a Check reads it from the key token", arg.secret.Name, arg.secret.Key)
			}
			secret = arg.secret.Name
			continue
		}
		if c.secretIn(h.Value) {
			c.add(at, "%s is left out, since it has a value of a Secret: name a Secret with a token, or with username and password, in secretName",
				h.Key)
			continue
		}
		if value, ok := c.text(at, h.Value, maxURL); ok {
			if headers == nil {
				headers = map[string]string{}
			}
			headers[h.Key] = value
		}
	}
	return headers, secret
}

var bearerArgument = regexp.MustCompile(`^Bearer\s+\{\{\s*args\.([^\s{}]+)\s*\}\}$`)

// bearer is the argument that is the token of an Authorization header; empty if there is none.
func bearer(h header) string {
	if found := bearerArgument.FindStringSubmatch(h.Value); found != nil && strings.EqualFold(h.Key, "Authorization") {
		return found[1]
	}
	return ""
}

func (c *metricConversion) secretIn(text string) bool {
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if arg := c.args.find(found[1]); arg != nil && arg.secret != nil {
			return true
		}
	}
	return false
}

func (c *metricConversion) web(spec *shipper.CheckSpec, from *webProvider, raw map[string]any) bool {
	const field = "provider.web"
	c.report.keys(raw, convertedWeb, unconvertedProvider, c.field+"."+field)
	url, ok := c.url(field+".url", from.URL)
	if !ok {
		c.add(field+".url", "is not converted: the metric has no Check")
		return false
	}
	c.add(field+".url", "%s %s", url, listURL)
	spec.HTTP = &shipper.HTTPCheck{URL: url}
	switch from.Method {
	case "", "GET":
	case "POST":
		spec.HTTP.Method = "POST"
	default:
		spec.HTTP.Method = "POST"
		c.add(field+".method", "%s becomes POST: a Check sends GET or POST", from.Method)
	}
	spec.HTTP.Headers, spec.HTTP.SecretName = c.headers(field, from.Headers)
	if len(spec.HTTP.Headers) > maxHeaders {
		c.add(field+".headers", "are left out: they are %d, and a Check takes %d", len(spec.HTTP.Headers), maxHeaders)
		spec.HTTP.Headers = nil
	}
	spec.HTTP.Body = c.body(field, from)
	c.timeout(spec, field+".timeoutSeconds", from.TimeoutSeconds)
	path, err := responsePath(from.JSONPath)
	if err != nil {
		c.add(field+".jsonPath", "%s is not converted (%s): write pass", from.JSONPath, err)
		undecided(spec)
		return true
	}
	if c.metric.SuccessCondition+c.metric.FailureCondition == "" {
		if path != responseJSON {
			c.add(field+".jsonPath", "has no condition: the Check passes by the status of the response alone")
		}
		return true
	}
	c.judge(spec, condition.Operand{CEL: path})
	return true
}

// url converts a URL, whose host takes no arguments.
func (c *metricConversion) url(field, from string) (string, bool) {
	head, rest := from, ""
	if scheme, after, found := strings.Cut(from, "://"); found {
		if i := strings.IndexAny(after, "/?#"); i >= 0 {
			head, rest = scheme+"://"+after[:i], after[i:]
		}
	}
	if head == "" {
		return "", false
	}
	head, ok := c.fixed(field, head)
	if !ok {
		return "", false
	}
	rest, ok = c.text(field, rest, maxURL-len(head))
	return head + rest, ok
}

// body converts the body of a POST.
func (c *metricConversion) body(field string, from *webProvider) string {
	body, at := from.Body, field+".body"
	if from.JSONBody != nil {
		body, at = encoded(from.JSONBody), field+".jsonBody"
	}
	if body == "" {
		return ""
	}
	out, ok := c.text(at, body, maxBody)
	if ok && !json.Valid([]byte(out)) {
		c.add(at, "is left out, since it is no JSON with arguments in its texts only")
		return ""
	}
	return out
}

// encoded is JSON without the escapes that HTML needs.
func encoded(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // it was decoded from JSON
		return ""
	}
	return strings.TrimSpace(out.String())
}

// responseJSON is the response in expressions.
const responseJSON = "response.json"

var (
	wholePath = regexp.MustCompile(`^\{?\$?((\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]{1,9}\]|\['[^'\\]+'\])*)\.?\}?$`)
	pathParts = regexp.MustCompile(`\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]+)\]|\['([^'\\]+)'\]`)
)

// responsePath is the expression for a JSONPath of Kubernetes, which selects one value.
func responsePath(path string) (string, error) {
	found := wholePath.FindStringSubmatch(strings.TrimSpace(path))
	if found == nil {
		return "", fmt.Errorf("it is no path of fields and numbers")
	}
	out := responseJSON
	for _, part := range pathParts.FindAllStringSubmatch(found[1], -1) {
		switch name := part[1] + part[3]; {
		case part[2] != "":
			out += "[" + part[2] + "]"
		default:
			out += condition.Field(name)
		}
	}
	return out, nil
}

func (c *metricConversion) job(spec *shipper.CheckSpec, from *jobProvider, raw map[string]any) bool {
	const field = "provider.job"
	c.report.keys(raw, convertedJob, unconvertedProvider, c.field+"."+field)
	ok := len(from.Spec) > 0
	converted := mapTexts(from.Spec, func(text string) string {
		out, fine := c.text(field+".spec", text, math.MaxInt32)
		ok = ok && fine
		return out
	})
	if !ok {
		c.add(field+".spec", "is not converted: the metric has no Check")
		return false
	}
	spec.Job = &runtime.RawExtension{Raw: []byte(encoded(converted))}
	if seconds, _ := strconv.ParseInt(fmt.Sprint(from.Spec["activeDeadlineSeconds"]), 10, 32); seconds > 0 {
		if most := time.Duration(seconds) * time.Second; most > checkrules.DefaultRunTimeout {
			spec.Timeout = format(min(most, maxInterval))
		}
	}
	return true
}

// mapTexts converts the texts in JSON, names of fields not included.
func mapTexts(value any, convert func(string) string) any {
	switch value := value.(type) {
	case string:
		return convert(value)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = mapTexts(item, convert)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) { // in order, so that reviews are
			out[key] = mapTexts(value[key], convert)
		}
		return out
	}
	return value
}
