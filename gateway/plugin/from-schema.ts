/** Reads a TypeScript type from a JSON Schema that is written as a constant. */

/**
 * The type of a value that a schema describes, after defaults are applied. It knows `type`, `const`, `enum`, `items`,
 * `properties`, `required`, `default` and `additionalProperties`; a text whose pattern begins with "^0x" begins with "0x".
 * A schema that is not a constant describes `unknown`.
 *
 * @example FromSchema<{ type: 'object'; properties: { url: { type: 'string' } } }> // { readonly url?: string }
 */
export type FromSchema<Schema> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly type: infer Type }
      ? OfType<Schema, Type extends readonly (infer One)[] ? One : Type>
      : unknown

type OfType<Schema, Type> = Type extends 'object'
  ? FromObject<Schema>
  : Type extends 'array'
    ? readonly (Schema extends { readonly items: infer Items } ? FromSchema<Items> : unknown)[]
    : Type extends 'string'
      ? Schema extends { readonly pattern: `^0x${string}` }
        ? `0x${string}`
        : string
      : Type extends 'number' | 'integer'
        ? number
        : Type extends 'boolean'
          ? boolean
          : Type extends 'null'
            ? null
            : unknown

type FromObject<Schema> = Schema extends { readonly properties: infer Properties }
  ? { readonly [Name in Present<Schema, Properties>]: FromSchema<Properties[Name]> } & {
      readonly [Name in Exclude<keyof Properties, Present<Schema, Properties>>]?: FromSchema<Properties[Name]>
    }
  : Schema extends { readonly additionalProperties: infer Values }
    ? Readonly<Record<string, FromSchema<Values>>>
    : Readonly<Record<string, unknown>>

/** The properties that are always there: required ones, and those with a default. */
type Present<Schema, Properties> = keyof Properties &
  (
    | (Schema extends { readonly required: readonly (infer Name)[] } ? Name : never)
    | {
        [Name in keyof Properties]: Properties[Name] extends { readonly default: unknown } ? Name : never
      }[keyof Properties]
  )
