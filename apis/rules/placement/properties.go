// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The built-in properties; also <resource>.capacity and <resource>.allocatable.
const (
	propertyNodes      = "nodes"
	propertyKubernetes = "kubernetes"
	capacitySuffix     = ".capacity"
	allocatableSuffix  = ".allocatable"
)

const (
	// maxValue bounds a value in bytes, as PropertyRequirement does.
	maxValue = 63
	// maxMagnitude bounds the amount of a quantity: to compare one like 1e9999999 takes seconds.
	maxMagnitude = 1e100
)

// slots number the properties that a policy names, so that each cluster's value is read at most once.
type slots map[string]int

func (s slots) of(name string) int {
	if slot, ok := s[name]; ok {
		return slot
	}
	s[name] = len(s)
	return s[name]
}

type valueState int8

const (
	unread valueState = iota
	absent
	malformed
	known
)

// value is the value of one property. A version is that of kubernetes, any other property is a number.
type value struct {
	state   valueState
	number  resource.Quantity
	version version
	// text is the value as it was declared; empty for a number of the status.
	text string
}

// property returns the cluster's value of the property in this slot.
func (c *candidate) property(name string, slot int) *value {
	v := &c.values[slot]
	if v.state == unread {
		*v = propertyOf(c.Cluster, name)
	}
	return v
}

// propertyOf reads a property. What the Cluster declares wins over what Shipper observes, and that over ConfigMaps in the cluster.
func propertyOf(c *shipper.Cluster, name string) value {
	if text, ok := c.Spec.Properties[name]; ok {
		return parseValue(name, text)
	}
	if name == propertyKubernetes && c.Status.KubernetesVersion != "" {
		return parseValue(name, c.Status.KubernetesVersion)
	}
	if name == propertyNodes && c.Status.Nodes != nil {
		return value{state: known, number: *resource.NewQuantity(int64(*c.Status.Nodes), resource.DecimalSI)}
	}
	if q, ok := resourceIn(c.Status.Capacity, name, capacitySuffix); ok {
		return ofQuantity(q)
	}
	if q, ok := resourceIn(c.Status.Allocatable, name, allocatableSuffix); ok {
		return ofQuantity(q)
	}
	if text, ok := c.Status.Properties[name]; ok {
		return parseValue(name, text)
	}
	return value{state: absent}
}

// DeclaredProperty is a property that users have declared: of the Cluster, or else of a ConfigMap in the cluster. Properties that Shipper
// observes, such as nodes and cpu.available, change by themselves and are none of these.
func DeclaredProperty(c *shipper.Cluster, name string) (string, bool) {
	if value, there := c.Spec.Properties[name]; there {
		return value, true
	}
	value, there := c.Status.Properties[name]
	return value, there
}

// resourceIn returns the quantity that a property such as cpu.capacity names.
func resourceIn(list corev1.ResourceList, name, suffix string) (resource.Quantity, bool) {
	of, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return resource.Quantity{}, false
	}
	q, ok := list[corev1.ResourceName(of)]
	return q, ok
}

func ofQuantity(q resource.Quantity) value {
	if math.Abs(q.AsApproximateFloat64()) > maxMagnitude {
		return value{state: malformed, text: "too large"}
	}
	return value{state: known, number: q}
}

// parseValue reads the value of the property of this name: a version for kubernetes, otherwise a quantity.
func parseValue(name, text string) value {
	if name == propertyKubernetes {
		if v, ok := parseVersion(text); ok {
			return value{state: known, version: v, text: text}
		}
		return value{state: malformed, text: text}
	}
	if q, ok := parseQuantity(text); ok {
		return value{state: known, number: q, text: text}
	}
	return value{state: malformed, text: text}
}

// parseQuantity parses a quantity of bounded length and exponent.
func parseQuantity(text string) (resource.Quantity, bool) {
	if len(text) > maxValue || exponentDigits(text) > 2 {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// exponentDigits is the number of digits of a decimal exponent. To parse one of millions takes seconds.
func exponentDigits(text string) int {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return 0
	}
	return len(strings.TrimLeft(text[at+1:], "+-"))
}

// String is the value as messages have it.
func (v *value) String() string {
	if v.text != "" || v.state != known {
		return shortened(v.text, maxValue)
	}
	return v.number.String()
}

// amount is the value as a sorter has it.
func (v *value) amount(name string) float64 {
	if name == propertyKubernetes {
		return v.version.amount()
	}
	return v.number.AsApproximateFloat64()
}

// compare is negative when v is less than want, and positive when it is greater.
func (v *value) compare(name string, want *value) int {
	if name == propertyKubernetes {
		return v.version.compare(want.version)
	}
	return v.number.Cmp(want.number)
}

// meets reports whether v is to want as the operator says.
func (v *value) meets(name string, operator shipper.PropertyOperator, want *value) bool {
	switch c := v.compare(name, want); operator {
	case shipper.PropertyGt:
		return c > 0
	case shipper.PropertyGe:
		return c >= 0
	case shipper.PropertyEq:
		return c == 0
	case shipper.PropertyNe:
		return c != 0
	case shipper.PropertyLe:
		return c <= 0
	case shipper.PropertyLt:
		return c < 0
	default:
		return false
	}
}

// version is a version of Kubernetes: major, minor and, where it was written, patch.
type version struct {
	numbers [3]int
	written int
}

// parseVersion reads v1.33, 1.33.4 or v1.33.4-gke.1. What distributions append does not make a version older: it is left out.
func parseVersion(text string) (version, bool) {
	var v version
	text = strings.TrimPrefix(text, "v")
	if at := strings.IndexAny(text, "-+"); at >= 0 {
		text = text[:at]
	}
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil || v.written == len(v.numbers) {
			return version{}, false
		}
		v.numbers[v.written] = int(n)
		v.written++
	}
	return v, v.written >= 2
}

// compare compares as many numbers as want has: 1.33.4 is equal to 1.33.
func (v version) compare(want version) int {
	for i := range want.written {
		if d := v.numbers[i] - want.numbers[i]; d != 0 {
			return d
		}
	}
	return 0
}

// amount puts versions on a line for a sorter, where a minor version is as long as 100 patches.
func (v version) amount() float64 {
	const step = 100
	return float64((v.numbers[0]*step+min(v.numbers[1], step-1))*step + min(v.numbers[2], step-1))
}
