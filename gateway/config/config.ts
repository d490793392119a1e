/**
 * Configuration: the environment, parsed once against schemas/config.json into a frozen Config. Nothing else reads
 * process.env; all mistakes are reported together.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { sentences } from '../catalog/messages.ts'
import { knownNetworks, type Lane, laneMistakes, lanesOf, networksOf, ownVariables, SANDBOX } from './settlement.ts'
import type { Hex } from './networks.ts'

/** How products are fed: made-up data, recorded data, or the public sources. */
export type DataMode = 'sample' | 'replay' | 'online'

/** With the lane of the leading network: the one the documents name where they name one. */
export interface Config extends Lane {
  /** Every network payments are taken on, the leading one first. */
  readonly lanes: readonly Lane[]
  readonly host: string
  readonly port: number
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Addresses and CIDR ranges of proxies that say who calls, besides private ones. */
  readonly trustedProxies: readonly string[]
  /** DATA_DIR as given. */
  readonly dataRoot: string
  /** DATA_DIR/<leading network>-<data mode>: synthetic history can never be sold as real. */
  readonly dataDir: string
  readonly dataMode: DataMode
  /** The most payments that share a transaction; 1: each goes alone. */
  readonly settleBatch: number
  /** Contracts whose wallets may pay before they exist. */
  readonly walletFactories: readonly Hex[]
  readonly quoteGraceSeconds: number
  readonly answerRetentionSeconds: number
  readonly replayDir: string | null
  readonly replayShift: string
  readonly tokenKeys: string | null
  readonly databaseUrl: string | null
  readonly keyvUrl: string | null
  readonly catalogDir: string
  readonly schemaDir: string
  readonly viewDir: string
  readonly pluginDirs: readonly string[]
  readonly operatorToken: string | null
  /** Wallets whose payments are no revenue, lower case. */
  readonly ownWallets: readonly string[]
  readonly alertWebhookUrl: string | null
  readonly sandboxBlockSeconds: number
  readonly logLevel: string
  /** Values for `env:NAME` in catalog documents. Null where the variable is not set. */
  readonly secret: (name: string) => string | null
  /** All variables as given, for a process of its own with the same configuration. */
  readonly environment: Environment
}

/** All configuration mistakes at once; the message is a list for people. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[]
  constructor(mistakes: readonly string[]) {
    super(`These variables of the environment are set wrongly:\n${mistakes.map((line) => `  - ${line}`).join('\n')}`)
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}

type Environment = Readonly<Record<string, string | undefined>>
interface Values {
  [name: string]: string | number | boolean | undefined
}

const root = resolve(import.meta.dirname, '../..')
interface Property {
  readonly description: string
}
const schema = JSON.parse(readFileSync(join(root, 'schemas', 'config.json'), 'utf8')) as {
  readonly properties: Readonly<Record<string, Property>>
}

/**
 * Reads the configuration. Throws ConfigError with every mistake: wrong values, and what production lacks (PAY_TO, a
 * settler, https in BASE_URL).
 */
export function readConfig(environment: Environment = process.env): Config {
  const values: Values = {}
  const names = networksOf(environment['NETWORK'])
  const properties: Record<string, Property> = { ...schema.properties }
  for (const [name, variable] of ownVariables(names)) properties[name] = schema.properties[variable] as Property
  for (const name of Object.keys(properties)) {
    const text = environment[name]
    if (text !== undefined && text !== '') values[name] = text
  }
  const mistakes: string[] = []
  const validate = new Ajv2020({ allErrors: true, coerceTypes: true, useDefaults: true, strict: false }).compile({
    ...schema,
    properties,
  })
  if (!validate(values)) {
    for (const { steps, msg } of sentences(validate.errors ?? [])) {
      const name = steps.join('.')
      mistakes.push(
        `${name} ${msg.charAt(0).toLowerCase()}${msg.slice(1)} ${properties[name]?.description ?? ''}`.trim(),
      )
    }
    throw new ConfigError(mistakes)
  }
  const text = (name: string): string | null => (values[name] === undefined ? null : String(values[name]))
  const lanes = lanesOf(names, text)
  const [leading] = lanes
  const dataMode = text('DATA_MODE') as DataMode
  const host = text('HOST') ?? '127.0.0.1'
  const baseUrl = text('BASE_URL') ?? `http://${host.includes(':') ? `[${host}]` : host}:${values['PORT']}`
  const config: Config = {
    host,
    port: Number(values['PORT']),
    baseUrl,
    trustedProxies: (text('TRUSTED_PROXIES') ?? '').split(/\s+/).filter(Boolean),
    dataRoot: resolve(text('DATA_DIR') ?? 'data'),
    dataDir: resolve(text('DATA_DIR') ?? 'data', `${leading.network}-${dataMode}`),
    dataMode,
    ...leading,
    lanes,
    settleBatch: Number(values['SETTLE_BATCH']),
    walletFactories: (text('WALLET_FACTORIES') ?? '').split(/[\s,]+/).filter(Boolean) as Hex[],
    quoteGraceSeconds: Number(values['QUOTE_GRACE_SECONDS']),
    answerRetentionSeconds: Number(values['ANSWER_RETENTION']),
    replayDir: text('REPLAY_DIR') === null ? null : resolve(text('REPLAY_DIR') as string),
    replayShift: text('REPLAY_SHIFT') ?? 'auto',
    tokenKeys: text('TOKEN_KEYS'),
    databaseUrl: text('DATABASE_URL'),
    keyvUrl: text('KEYV_URL'),
    catalogDir: resolve(root, text('CATALOG_DIR') ?? 'catalog'),
    schemaDir: join(root, 'schemas'),
    viewDir: join(root, 'views'),
    pluginDirs: (text('PLUGIN_DIRS') ?? 'plugins').split(delimiter).map((folder) => resolve(root, folder)),
    operatorToken: text('OPERATOR_TOKEN'),
    ownWallets: ownWalletsOf(text('OWN_WALLETS'), lanes),
    alertWebhookUrl: text('ALERT_WEBHOOK_URL'),
    sandboxBlockSeconds: Number(values['SANDBOX_BLOCK_SECONDS']),
    logLevel: text('LOG_LEVEL') ?? 'info',
    secret: (name) => environment[name] ?? null,
    environment,
  }
  mistakes.push(...missing(config, values['ALLOW_SAMPLE_SALES'] === true))
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return Object.freeze(config)
}

/** Whoever is paid here and pays here has earned nothing. */
function ownWalletsOf(named: string | null, lanes: readonly Lane[]): readonly string[] {
  const wallets = [...(named ?? '').split(/\s+/), ...lanes.map(({ payTo }) => payTo ?? '')]
  return [...new Set(wallets.filter(Boolean).map((wallet) => wallet.toLowerCase()))]
}

/** What is missing or contradictory, one sentence each. */
function missing(config: Config, sampleSalesAllowed: boolean): string[] {
  const mistakes: string[] = []
  const says = (name: string): string => schema.properties[name]?.description ?? ''
  if (!isSafeAddress(config.baseUrl))
    mistakes.push(`BASE_URL is ${config.baseUrl}: buyers need https, except on loopback. ${says('BASE_URL')}`)
  for (const proxy of config.trustedProxies.filter((range) => !isRange(range)))
    mistakes.push(`TRUSTED_PROXIES: ${proxy} is no address and no range. ${says('TRUSTED_PROXIES')}`)
  if (config.dataMode === 'replay' && config.replayDir === null)
    mistakes.push(`REPLAY_DIR is missing, and DATA_MODE=replay needs it. ${says('REPLAY_DIR')}`)
  if (config.network === SANDBOX && config.lanes.length === 1) return mistakes
  const { known, mistakes: unreadable } = knownNetworks(config.catalogDir)
  if (unreadable.length > 0) return [...mistakes, ...unreadable]
  mistakes.push(...laneMistakes(config.lanes, known, says))
  const isReal = config.lanes.some(({ network }) => known.some(({ name, isTest }) => name === network && !isTest))
  if (isReal && config.dataMode !== 'online' && !sampleSalesAllowed)
    mistakes.push(`DATA_MODE is ${config.dataMode}: real money buys online data only, unless ALLOW_SAMPLE_SALES=true.`)
  return mistakes
}

/** @example isRange('203.0.113.0/24') → true */
function isRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const most = isIP(address) === 4 ? 32 : 128
  const isBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= most)
  return isIP(address) !== 0 && isBits && more.length === 0
}

function isSafeAddress(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
