// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	openapi "k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// generated are the bounds of single fields, as the markers on the types say and API servers validate. The rules in Go are those of several
// fields, and of what a schema cannot say.
//
//go:embed zz_generated.schema.json
var generated []byte

// validators are those of the types that have a schema, by name.
var validators = sync.OnceValues(func() (map[string]*validate.SchemaValidator, error) {
	var schemas map[string]*openapi.Schema
	if err := json.Unmarshal(generated, &schemas); err != nil {
		return nil, fmt.Errorf("read the generated schemas: %w", err)
	}
	all := map[string]*validate.SchemaValidator{}
	for name, schema := range schemas {
		all[name] = validate.NewSchemaValidator(schema, nil, "", strfmt.Default)
	}
	return all, nil
})

// ValuesOf are the values that a field of Cluster may have, in order, by its path with dots. A path that names no enumeration has none.
func ValuesOf(path string) []string {
	all, err := validators()
	if err != nil || all["Cluster"] == nil {
		return nil
	}
	at := schemaAt(all["Cluster"].Schema, path)
	if at == nil {
		return nil
	}
	values := words(at)
	slices.Sort(values)
	return values
}

// withBounds adds what a type's schema refuses to what rules do. What a rule refuses, or forbids with all around it, is left to the
// rule, which says more.
func withBounds(name string, value any, path *field.Path, rules field.ErrorList) field.ErrorList {
	var document map[string]any
	all, err := validators()
	raw, failed := json.Marshal(value)
	if err := errors.Join(err, failed, utiljson.Unmarshal(raw, &document)); err != nil {
		return append(rules, field.InternalError(path, err))
	}
	validator := all[name]
	var errs field.ErrorList
	for _, err := range validator.Validate(document).Errors {
		refused := refusal(validator.Schema, path, err)
		if !slices.ContainsFunc(rules, func(rule *field.Error) bool {
			return refused.Field == rule.Field || rule.Type == field.ErrorTypeForbidden && isWithinField(refused.Field, rule.Field)
		}) {
			errs = append(errs, refused)
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return append(rules, errs...)
}

// isWithinField reports whether a path is that of something in a field.
func isWithinField(path, of string) bool {
	rest, within := strings.CutPrefix(path, of)
	return within && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// refusal says what a schema refuses, and what it allows.
func refusal(schema *openapi.Schema, path *field.Path, err error) *field.Error {
	//nolint:errorlint // the library wraps none
	refused, is := err.(*openapierrors.Validation)
	if !is {
		return field.Invalid(path, "", err.Error())
	}
	name := strings.TrimPrefix(refused.Name, ".")
	at, allowed := path, schemaAt(schema, name)
	if name != "" {
		at = path.Child(name)
	}
	if allowed == nil {
		return field.Invalid(at, refused.Value, refused.Error())
	}
	tooMany := func(what string, most *int64) *field.Error {
		err := field.TooMany(at, -1, int(*most))
		err.Detail = fmt.Sprintf("use at most %d %s", *most, what)
		return err
	}
	switch refused.Code() {
	case openapierrors.RequiredFailCode:
		switch {
		case len(allowed.Enum) > 0:
			return field.NotSupported(at, "", words(allowed))
		case allowed.Minimum != nil || allowed.Maximum != nil:
			return field.Required(at, "use a number "+numbers(allowed))
		}
		return field.Required(at, sentence(allowed.Description))
	case openapierrors.EnumFailCode:
		return field.NotSupported(at, fmt.Sprint(refused.Value), words(allowed))
	case openapierrors.MinFailCode, openapierrors.MaxFailCode:
		return field.Invalid(at, refused.Value, "use a number "+numbers(allowed))
	case openapierrors.TooLongFailCode:
		err := field.TooLong(at, "", int(*allowed.MaxLength))
		err.Detail = fmt.Sprintf("use at most %d characters", *allowed.MaxLength)
		return err
	case openapierrors.TooShortFailCode:
		return field.Invalid(at, refused.Value, fmt.Sprintf("use at least %d characters", *allowed.MinLength))
	case openapierrors.MaxItemsFailCode:
		return tooMany("items", allowed.MaxItems)
	case openapierrors.TooManyPropertiesCode:
		return tooMany("entries", allowed.MaxProperties)
	case openapierrors.MinItemsFailCode:
		return field.Invalid(at, refused.Value, fmt.Sprintf("use at least %d items", *allowed.MinItems))
	case openapierrors.PatternFailCode:
		return field.Invalid(at, refused.Value, "has another form: "+sentence(allowed.Description))
	}
	return field.Invalid(at, refused.Value, refused.Error())
}

func words(allowed *openapi.Schema) []string {
	words := make([]string, len(allowed.Enum))
	for i, word := range allowed.Enum {
		words[i] = fmt.Sprint(word)
	}
	return words
}

func numbers(allowed *openapi.Schema) string {
	switch least, most := allowed.Minimum, allowed.Maximum; {
	case least != nil && most != nil:
		return fmt.Sprintf("from %.0f to %.0f", *least, *most)
	case least != nil:
		return fmt.Sprintf("from %.0f", *least)
	default:
		return fmt.Sprintf("up to %.0f", *most)
	}
}

// sentence is the first one of a description.
func sentence(description string) string {
	first, _, _ := strings.Cut(strings.Join(strings.Fields(description), " "), ". ")
	return strings.TrimSuffix(first, ".")
}

var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// schemaAt is that of the field at a path, nil if there is none.
func schemaAt(schema *openapi.Schema, path string) *openapi.Schema {
	for path != "" {
		if index := indexes.FindStringIndex(path); index != nil && index[0] == 0 {
			if schema.Items == nil || schema.Items.Schema == nil {
				return nil
			}
			schema, path = schema.Items.Schema, strings.TrimPrefix(path[index[1]:], ".")
			continue
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			return schema.AdditionalProperties.Schema // its keys may have dots
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		property, found := schema.Properties[path[:end]]
		if !found {
			return nil
		}
		schema, path = &property, strings.TrimPrefix(path[end:], ".")
	}
	return schema
}
