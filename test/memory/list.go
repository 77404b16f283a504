// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// listOptions reads and validates the options of a list or a watch.
func (c call) listOptions() (metainternalversion.ListOptions, error) {
	var o metainternalversion.ListOptions
	query := c.request.URL.Query()
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	metainternalversion.SetListOptionsDefaults(&o, true)
	if errs := metainternalversionvalidation.ValidateListOptions(&o, true); len(errs) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return o, nil
}

// page is a part of a list.
type page struct {
	objects  []*object
	version  uint64
	next     string // the token of the next page
	remains  int64
	counting bool // remains is known
}

// list responds with a list, or with a page of one.
func (s *Server) list(w http.ResponseWriter, c call) {
	o, err := c.listOptions()
	if err == nil {
		err = c.selection()
	}
	if err == nil {
		c.metadata, err = partial(c.request, "PartialObjectMetadataList", c.kind)
	}
	var p page
	if err == nil {
		p, err = s.page(c, o)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	meta := map[string]any{"resourceVersion": versionString(p.version)}
	if c.kind.custom() && !c.metadata {
		meta["continue"] = "" // lists of custom resources have it always
	}
	if p.next != "" {
		meta["continue"] = p.next
		if p.counting {
			meta["remainingItemCount"] = p.remains
		}
	}
	raws := make([]json.RawMessage, len(p.objects))
	for i, o := range p.objects {
		raws[i] = c.item(o.raw)
	}
	kind, apiVersion := c.kind.Kind+"List", c.kind.groupVersion()
	if c.metadata {
		kind, apiVersion = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	}
	write(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": meta, "items": raws})
}

// item is an object as it is in a list: those of Kubernetes' own kinds do not repeat their kind.
func (c call) item(raw []byte) json.RawMessage {
	if c.metadata || c.kind.custom() {
		return c.form(raw)
	}
	kind := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, c.kind.Kind, c.kind.groupVersion())
	if rest, ok := bytes.CutPrefix(raw, kind); ok {
		return append([]byte("{"), rest...)
	}
	return raw
}

// page computes what a list responds with.
func (s *Server) page(c call, o metainternalversion.ListOptions) (page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := page{version: s.version}
	t := c.table
	from, pinned := "", false
	switch {
	case o.Continue != "":
		key, version, err := storage.DecodeContinue(o.Continue, prefix+"/")
		if err != nil {
			return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		if version > 0 {
			p.version, pinned = uint64(version), true
		}
		from = key
	case o.ResourceVersion != "":
		version, err := storage.APIObjectVersioner{}.ParseResourceVersion(o.ResourceVersion)
		if err != nil {
			return p, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
		}
		if version > s.version {
			return p, storage.NewTooLargeResourceVersionError(version, s.version, 1)
		}
		exact := version > 0 && (o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0)
		if exact {
			p.version, pinned = version, true
		}
	}
	if pinned {
		var ok bool
		if t, ok = c.at(p.version); !ok {
			return p, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
	}
	for _, object := range t.list(c.space(), c.selector) {
		if prefix+"/"+object.namespace+"/"+object.name >= from {
			p.objects = append(p.objects, object)
		}
	}
	if limit := int(o.Limit); limit > 0 && limit < len(p.objects) {
		last := p.objects[limit-1]
		token, err := storage.EncodeContinue(prefix+"/"+last.namespace+"/"+last.name+"\x00", prefix+"/", int64(p.version))
		if err != nil {
			return p, apierrors.NewInternalError(err)
		}
		p.next, p.remains = token, int64(len(p.objects)-limit)
		p.counting = c.selector.labels.Empty() && c.selector.fields.Empty()
		p.objects = p.objects[:limit]
	}
	return p, nil
}
