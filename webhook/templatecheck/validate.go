// SPDX-License-Identifier: Apache-2.0

// Package templatecheck validates the environment that Applications and Releases share: the chart and values, or the resources, and the
// cluster requirements and strategy of one version of an application. It only reads its arguments.
package templatecheck

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/index"
)

// Bounds of an environment.
const (
	// MaxValuesBytes bounds the values as JSON. They are stored in the Application, in each Release and in each
	// InstallationTarget, and etcd takes objects of 1.5 MiB.
	MaxValuesBytes = 1 << 20
	// MaxTogetherBytes bounds the values together with an archive beside them, for the same reason.
	MaxTogetherBytes = MaxValuesBytes + 1<<18
	// MaxSteps bounds a strategy.
	MaxSteps = 100
	// MaxGates bounds the readinessGates of a step.
	MaxGates = 10
	// MaxPercent is all of the capacity.
	MaxPercent = 100
	// MaxClustersPerRegion bounds the clusters wanted in one region.
	MaxClustersPerRegion = 1000
	// MaxDuration bounds the durations of a strategy.
	MaxDuration = 720 * time.Hour
	// MinProgressDeadline is the shortest progressDeadline.
	MinProgressDeadline = 30 * time.Second
)

// Validate returns the errors of env, which is at path. Its chart must have an exact version. Whether what its resources select may be
// placed is not judged here: Releases keep what was admitted.
func Validate(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	errs, done := validateContent(env, path)
	if done {
		return errs
	}
	errs = append(errs, validateChart(env.Chart, path.Child("chart"))...)
	errs = append(errs, validateValues(env.Values, path.Child("values"), len(env.Chart.Archive))...)
	errs = append(errs, validatePlaces(env, path)...)
	errs = append(errs, validateSources(env, path)...)
	errs = append(errs, validateRequirements(env.ClusterRequirements, path.Child("clusterRequirements"))...)
	return append(errs, validateStrategy(env.Strategy, path.Child("strategy"))...)
}

func validateChart(c shipper.Chart, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(c.Name) == "" {
		errs = append(errs, field.Required(path.Child("name"), "name the chart as the repository's index does"))
	}
	errs = append(errs, validateSource(c, path)...)
	errs = append(errs, validateProvenance(c, path)...)
	if !index.IsExact(c.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), c.Version,
			"must be an exact version here; constraints are resolved in Applications, by Shipper's mutating webhook"))
	}
	return errs
}

// validateSource returns the errors of a chart's origin. Archives are opened when they are pinned.
func validateSource(c shipper.Chart, path *field.Path) field.ErrorList {
	if c.Credentials.SecretName != "" {
		if u, err := url.Parse(c.RepoURL); c.Archive != "" || err == nil && u.User != nil {
			return field.ErrorList{field.Forbidden(path.Child("credentials"),
				"are for a repository whose URL has none itself: leave one of the two out")}
		}
	}
	if c.Archive == "" {
		if c.RepoURL == "" {
			return field.ErrorList{field.Required(path.Child("repoUrl"), "name the repository, or put the chart's archive into archive")}
		}
		if why := whyNotRepository(c.RepoURL); why != "" {
			return field.ErrorList{field.Invalid(path.Child("repoUrl"), c.RepoURL, why)}
		}
		return nil
	}
	if c.RepoURL != "" {
		return field.ErrorList{field.Forbidden(path.Child("archive"), "the chart comes from repoUrl: leave one of the two out")}
	}
	return nil
}

// validateProvenance returns an error if a .prov file is missing that no repository has, or if one is given that would not be
// used.
func validateProvenance(c shipper.Chart, path *field.Path) field.ErrorList {
	at := path.Child("provenance")
	switch given := c.Provenance != ""; {
	case given && c.Archive == "":
		return field.ErrorList{field.Forbidden(at, "is for a chart that stands in archive: "+
			"the .prov file of one in a repository is beside it there")}
	case given && c.Verify.SecretName == "":
		return field.ErrorList{field.Forbidden(at, "is verified with the keys that chart.verify names: name them, or leave this out")}
	case !given && c.Archive != "" && c.Verify.SecretName != "":
		return field.ErrorList{field.Required(at, "chart.verify demands a signature: give the .prov file of the archive, "+
			"which `helm package --sign` makes")}
	}
	return nil
}

func whyNotRepository(repoURL string) string {
	u, err := url.Parse(repoURL)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "oci":
		return "must be an http or https URL, that of the folder that holds index.yaml, or oci://host/path of a registry"
	case u.Hostname() == "":
		return "must name a host"
	}
	return ""
}

// validateValues validates values beside an archive of so many bytes.
func validateValues(values *shipper.ChartValues, path *field.Path, archive int) field.ErrorList {
	if values == nil {
		return nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(values)", "cannot be written as JSON: "+err.Error())}
	}
	if len(text) > MaxValuesBytes {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("(%d bytes)", len(text)), fmt.Sprintf(
			"values may have %d bytes as JSON: each Release keeps a copy; put large files into the chart", MaxValuesBytes))}
	}
	if len(text)+archive > MaxTogetherBytes {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("(%d bytes)", len(text)), fmt.Sprintf("values and chart.archive, which has "+
			"%d bytes, may have %d bytes together: put the chart into a repository", archive, MaxTogetherBytes))}
	}
	return nil
}

func validateRequirements(r shipper.ClusterRequirements, path *field.Path) field.ErrorList {
	regions := path.Child("regions")
	errs := placement.ValidateChoice(r, path)
	errs = append(errs, placement.Validate(r.Placement, path.Child("placement"))...)
	seen := map[string]bool{}
	for i, region := range r.Regions {
		name := regions.Index(i).Child("name")
		switch {
		case strings.TrimSpace(region.Name) == "":
			errs = append(errs, field.Required(name, "name the region as Cluster objects do"))
		case seen[region.Name]:
			errs = append(errs, field.Duplicate(name, region.Name))
		}
		seen[region.Name] = true
		if n := region.Replicas; n != nil && (*n < 0 || *n > MaxClustersPerRegion) {
			errs = append(errs, field.Invalid(regions.Index(i).Child("replicas"), *n, fmt.Sprintf(
				"is the number of clusters wanted in this region: from 0 to %d", MaxClustersPerRegion)))
		}
	}
	seen = map[string]bool{}
	for i, capability := range r.Capabilities {
		at := path.Child("capabilities").Index(i)
		switch {
		case strings.TrimSpace(capability) == "":
			errs = append(errs, field.Required(at, "a capability has a name"))
		case seen[capability]:
			errs = append(errs, field.Duplicate(at, capability))
		}
		seen[capability] = true
	}
	return errs
}
