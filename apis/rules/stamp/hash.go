// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// exactFloat is the largest magnitude up to which every integer has its own float64.
const exactFloat = 1 << 53

// Hash is the FNV-1a hash (32 bits, hexadecimal without padding) of the environment's JSON, without chart.naming. What was taken from a
// Strategy counts by its digest in strategy.from. The hash does not depend on how a decoder holds a number: 3 and 3.0 are the same, and an
// integer beyond 2^53 counts as the float64 nearest to it.
func Hash(env shipper.ReleaseEnvironment) (string, error) {
	text, err := canonicalJSON(env)
	if err != nil {
		return "", err
	}
	sum := fnv.New32a()
	sum.Write(text) // a hash never fails to write
	return fmt.Sprintf("%x", sum.Sum32()), nil
}

// Digest is the SHA-256 (hexadecimal) of the same JSON, for decisions for which 32 bits are too few.
func Digest(env shipper.ReleaseEnvironment) (string, error) {
	text, err := canonicalJSON(env)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

func canonicalJSON(env shipper.ReleaseEnvironment) ([]byte, error) {
	env.Chart.Naming, env.Strategy = "", withoutTaken(env.Strategy)
	if env.Values != nil {
		values := shipper.ChartValues(canonicalMap(*env.Values))
		env.Values = &values
	}
	env.ValuesPerRegion, env.ValuesPerCluster = canonicalPlaces(env.ValuesPerRegion), canonicalPlaces(env.ValuesPerCluster)
	hashed := any(env)
	if env.ClusterRequirements.Placement == nil && env.Resources == nil {
		hashed = originalOf(env)
	}
	text, err := json.Marshal(hashed)
	if err != nil {
		return nil, fmt.Errorf("hashing environment: %w", err)
	}
	return text, nil
}

// original is an environment as the original writes it, where absent regions and steps are null. A field here hides the
// one of the same name in the embedded struct, and comes before all that are only there, as it does in the original.
type original struct {
	Chart               shipper.Chart        `json:"chart"`
	Values              *shipper.ChartValues `json:"values"`
	ClusterRequirements originalRequirements `json:"clusterRequirements"`
	Strategy            *originalStrategy    `json:"strategy,omitempty"`
	shipper.ReleaseEnvironment
}

type originalRequirements struct {
	Regions []shipper.RegionRequirement `json:"regions"`
	shipper.ClusterRequirements
}

type originalStrategy struct {
	Steps []shipper.RolloutStrategyStep `json:"steps"`
	shipper.RolloutStrategy
}

func originalOf(env shipper.ReleaseEnvironment) original {
	requirements := originalRequirements{env.ClusterRequirements.Regions, env.ClusterRequirements}
	var strategy *originalStrategy
	if env.Strategy != nil {
		strategy = &originalStrategy{env.Strategy.Steps, *env.Strategy}
	}
	return original{env.Chart, env.Values, requirements, strategy, env}
}

// canonicalPlaces is canonical for values per region or per cluster.
func canonicalPlaces(in []shipper.ValuesFor) []shipper.ValuesFor {
	var out []shipper.ValuesFor
	for _, one := range in {
		if one.Values != nil {
			values := shipper.ChartValues(canonicalMap(*one.Values))
			one.Values = &values
		}
		var patch []shipper.PatchOperation
		for _, operation := range one.Patch {
			patch = append(patch, canonicalMap(operation))
		}
		one.Patch = patch
		out = append(out, one)
	}
	return out
}

// canonicalMap is canonical for maps; nil stays nil, because its JSON differs from that of an empty map.
func canonicalMap(in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = canonical(v)
	}
	return out
}

// canonical returns v with every number in the one form that all decoders produce.
func canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return canonicalMap(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = canonical(v[i])
		}
		return out
	default:
		if n, ok := numberOf(v); ok {
			return n.canonical()
		}
		return v
	}
}

// number is a JSON number: an integer when it was decoded as one, a float otherwise.
type number struct {
	integer int64
	float   float64
	isInt   bool
}

// numberOf reads the forms in which decoders hold numbers.
func numberOf(v any) (number, bool) {
	switch v := v.(type) {
	case int64:
		return number{integer: v, float: float64(v), isInt: true}, true
	case int:
		return number{integer: int64(v), float: float64(v), isInt: true}, true
	case int32:
		return number{integer: int64(v), float: float64(v), isInt: true}, true
	case float64:
		return number{float: v}, true
	case float32:
		return number{float: float64(v)}, true
	case uint64:
		return number{integer: int64(v), float: float64(v), isInt: v <= math.MaxInt64}, true
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return number{integer: i, float: float64(i), isInt: true}, true
		}
		if f, err := v.Float64(); err == nil {
			return number{float: f}, true
		}
	}
	return number{}, false
}

// canonical is an int64 where floats are exact and a float64 elsewhere.
func (n number) canonical() any {
	if n.float == math.Trunc(n.float) && math.Abs(n.float) <= exactFloat {
		return int64(n.float)
	}
	return n.float
}

// equal compares exactly when both were decoded as integers, and as floats otherwise.
func (n number) equal(o number) bool {
	if n.isInt && o.isInt {
		return n.integer == o.integer
	}
	return n.float == o.float
}
