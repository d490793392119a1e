/** The command line of `npm run pay`. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { parseUnits } from 'viem/utils'
import type { Hex } from '../../gateway/config/networks.ts'
import { withCommands } from '../../gateway/config/project-root.ts'

export const USAGE = withCommands(`npm run pay -- METHOD PATH [options]

  npm run pay -- GET /v1/gold/2026-11-30
  npm run pay -- POST /v1/convert --body '{"ounces": 2, "currency": "EUR"}'

  METHOD PATH          a route, e.g. GET /pricing.json, or METHOD and a full URL
  --url URL            the service (default: the sandbox described in DATA_DIR/*/sandbox.json)
  --query NAME=VALUE   query parameter; may be repeated
  --body JSON          body; @file reads it from a file (.json, .csv or other)
  --form NAME=VALUE    multipart field; NAME=@file sends a file; may be repeated
  --header NAME:VALUE  header; may be repeated
  --token TOKEN        access token to send instead of a payment
  --key @file          file with the private key of the payer (default: the sandbox's buyer); npm prints a key that is
                       given as 0x...
  --rpc URL            node to read balances from (default: the sandbox's)
  --max USD            highest price to pay (default: 100 in the sandbox, 0.10 elsewhere)
  --v1                 prefer x402 v1 if both versions are offered
  --dry-run            show the price without signing
  --json               print one JSON object with the full answer
`)

/** An error to show without a stack trace. */
export class PayError extends Error {}

export interface Options {
  readonly method: string
  /** Path, or full URL. */
  readonly target: string
  readonly url: string | null
  readonly query: readonly (readonly [name: string, value: string])[]
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | Uint8Array<ArrayBuffer> | FormData | null
  readonly key: Hex | null
  readonly rpc: string | null
  /** Atomic units of USDC. */
  readonly max: bigint | null
  readonly v1: boolean
  readonly dryRun: boolean
  readonly json: boolean
}

const MEDIA: readonly (readonly [ending: string, media: string])[] = [
  ['.json', 'application/json'],
  ['.csv', 'text/csv'],
  ['.txt', 'text/plain'],
]

/** Parses the command line; null if help was requested. Throws PayError if it is wrong. */
export function readOptions(argv: readonly string[]): Options | null {
  const { values, positionals } = parse(argv)
  if (values.help) return null
  const [method, target, ...rest] = positionals
  if (method === undefined || target === undefined || rest.length > 0) throw new PayError(`Name one route.\n\n${USAGE}`)
  if (!/^[a-z]+$/i.test(method) || !/^(\/|https?:\/\/)/.test(target))
    throw new PayError(`"${method} ${target}" is not a method and a path.\n\n${USAGE}`)
  if (values.body !== undefined && values.form) throw new PayError('Give --body or --form, not both.')
  const headers = (values.header ?? []).map((header) => pair(header, ':', '--header'))
  if (values.token !== undefined) headers.push(['x-service-token', values.token])
  if (values.body !== undefined && !headers.some(([name]) => name.toLowerCase() === 'content-type'))
    headers.push(['content-type', values.body.startsWith('@') ? mediaOf(values.body) : 'application/json'])
  return {
    method: method.toUpperCase(),
    target,
    url: values.url ?? null,
    query: (values.query ?? []).map((parameter) => pair(parameter, '=', '--query')),
    headers,
    body: values.form ? formOf(values.form) : values.body === undefined ? null : bytes(values.body),
    key: values.key === undefined ? null : readKey(values.key),
    rpc: values.rpc ?? null,
    max: values.max === undefined ? null : readDollars('--max', values.max),
    v1: values.v1 ?? false,
    dryRun: values['dry-run'] ?? false,
    json: values.json ?? false,
  }
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const
  const list = { type: 'string', multiple: true } as const
  const flag = { type: 'boolean' } as const
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        url: text,
        query: list,
        body: text,
        form: list,
        header: list,
        token: text,
        key: text,
        rpc: text,
        max: text,
        v1: flag,
        'dry-run': flag,
        json: flag,
        help: { ...flag, short: 'h' },
      },
    })
  } catch (error) {
    throw new PayError(`${(error as Error).message}\n\n${USAGE}`)
  }
}

function pair(given: string, separator: string, option: string): [string, string] {
  const at = given.indexOf(separator)
  if (at < 1) throw new PayError(`${option} takes NAME${separator}VALUE, not "${given}".`)
  return [given.slice(0, at).trim(), given.slice(at + 1).trim()]
}

/** Reads a private key that is given as itself or as @file. Throws PayError if it is none. */
export function readKey(given: string): Hex {
  const key = text(given).trim()
  if (!/^0x[0-9a-f]{64}$/i.test(key)) throw new PayError('--key must be 0x and 64 hex digits.')
  return key as Hex
}

/** Reads an amount of dollars into atomic units of USDC. Throws PayError if it is none. */
export function readDollars(option: string, given: string): bigint {
  if (!/^\d+(\.\d{1,6})?$/.test(given)) throw new PayError(`${option} takes dollars such as 0.10, not "${given}".`)
  return parseUnits(given, 6)
}

function mediaOf(file: string): string {
  return MEDIA.find(([ending]) => file.endsWith(ending))?.[1] ?? 'application/octet-stream'
}

function formOf(fields: readonly string[]): FormData {
  const form = new FormData()
  for (const field of fields) {
    const [name, value] = pair(field, '=', '--form')
    if (!value.startsWith('@')) form.append(name, value)
    else form.append(name, new File([file(value)], basename(value.slice(1)), { type: mediaOf(value) }))
  }
  return form
}

function bytes(given: string): string | Uint8Array<ArrayBuffer> {
  return given.startsWith('@') ? file(given) : given
}

function text(given: string): string {
  return given.startsWith('@') ? Buffer.from(file(given)).toString() : given
}

function file(given: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(readFileSync(given.slice(1)))
  } catch {
    throw new PayError(`The file ${given.slice(1)} cannot be read.`)
  }
}
