/** Reads and checks an OpenAPI document with third-party tools. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

type Content = Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>

export interface DescribedOperation {
  readonly operationId: string
  readonly security: readonly object[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly schema: object
    readonly example?: unknown
  }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
  readonly 'x-payment-info'?: {
    readonly protocols: readonly object[]
    readonly price: { readonly mode: string; readonly currency: string; readonly amount: string }
    readonly offers: readonly { readonly amount: string }[]
  }
}

export interface Description {
  readonly info: { readonly version: string; readonly 'x-catalog-version': string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: object }
}

const CLI = resolve(import.meta.dirname, '../../node_modules/@redocly/cli/bin/cli.js')

const RULES = {
  struct: 'error',
  'no-unresolved-refs': 'error',
  'operation-operationId-unique': 'error',
  'operation-operationId-url-safe': 'error',
  'operation-parameters-unique': 'error',
  'operation-summary': 'error',
  'operation-4xx-response': 'error',
  'path-parameters-defined': 'error',
  'path-declaration-must-exist': 'error',
  'no-identical-paths': 'error',
  'no-ambiguous-paths': 'error',
  'no-path-trailing-slash': 'error',
  'no-invalid-media-type-examples': 'error',
  'security-defined': 'error',
  'no-empty-servers': 'error',
  'tag-description': 'error',
}

/** Returns the problems that redocly finds, one line each. Loads nothing from the network. */
export async function lint(description: object): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'openapi-'))
  const [file, config] = [join(folder, 'openapi.json'), join(folder, 'redocly.yaml')]
  try {
    await writeFile(file, JSON.stringify(description))
    await writeFile(config, JSON.stringify({ telemetry: 'off', rules: RULES }))
    const run = promisify(execFile)
    const found = await run(process.execPath, [CLI, 'lint', file, '--config', config, '--format', 'json'], {
      env: { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', REDOCLY_TELEMETRY: 'off' },
    }).catch((error: { stdout?: string; message: string }) => ({ stdout: error.stdout || error.message }))
    const report = JSON.parse(found.stdout.slice(found.stdout.indexOf('{'))) as {
      problems: { message: string; ruleId: string; location: { pointer?: string }[] }[]
    }
    return report.problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

export function operationsOf({ paths }: Description) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })),
  )
}

/** Returns atomic units by route, once from the dollar price and once from the offer. */
export function pricesIn(description: Description): Record<string, [bigint, bigint]> {
  const priced = operationsOf(description).flatMap(({ route, operation }) => {
    const info = operation['x-payment-info']
    if (info === undefined || info.price.mode !== 'fixed' || info.price.currency !== 'USD') return []
    const dollars = BigInt(Math.round(Number(info.price.amount) * 1e6))
    return [[route, [dollars, BigInt(info.offers[0]?.amount ?? 0)]] as const]
  })
  return Object.fromEntries(priced) as Record<string, [bigint, bigint]>
}

/** Returns the examples in parameters, bodies and responses that do not match their schemas. */
export function invalidExamples(description: Description): readonly string[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: true })
  addFormats.default(ajv)
  ajv.addSchema({ $id: 'description', components: description.components })
  const check = (where: string, schema: object, example: unknown): string[] => {
    if (example === undefined) return []
    const standalone = JSON.parse(
      JSON.stringify(schema).replaceAll('"#/components', '"description#/components'),
    ) as object
    const validate = ajv.compile(standalone)
    return validate(example) ? [] : [`${where}: ${ajv.errorsText(validate.errors)}`]
  }
  return operationsOf(description).flatMap(({ route, operation }) => {
    const contents = [
      operation.requestBody?.content ?? {},
      ...Object.values(operation.responses).map(({ content = {} }) => content),
    ]
    return [
      ...(operation.parameters ?? []).flatMap(({ name, schema, example }) =>
        check(`${route} ${name}`, schema, example),
      ),
      ...contents.flatMap((content) =>
        Object.entries(content).flatMap(([media, { schema, example }]) => check(`${route} ${media}`, schema, example)),
      ),
    ]
  })
}
