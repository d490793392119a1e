/**
 * The configuration: the environment, parsed once against schemas/config.json into a frozen Config. All issues are
 * reported together.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import { createAjv, violationsOf } from '../validation/json-schema.ts'
import { ConfigError } from './config-error.ts'
import { type Environment, isOfSystem, processEnvironment } from './environment.ts'
import {
  type NetworkConfig,
  networkIssues,
  networkConfigs,
  networkNames,
  ownVariables,
  SANDBOX,
  strictIssues,
  unknownNetwork,
} from './settlement.ts'
import { knownNetworks, type Hex } from './networks.ts'
import { isMistyped } from './pay-to.ts'
import { PROJECT_ROOT, SHOP_ROOT } from './project-root.ts'
import type { LogSettings } from '../observe/log.ts'
import type { DataMode, ReplayShift } from '../plugin/deployment.ts'

export { ConfigError } from './config-error.ts'

/** REPLAY_SHIFT, parsed: how the recorded times of DATA_MODE=replay are moved, and whether the clock of the data stops. */
export interface ParsedReplayShift extends ReplayShift {
  /** Where the clock of the data stops: at a time, or at the start of the process. Null means that it runs. */
  readonly frozenAt: Date | 'start' | null
}

/** Includes the settings of the leading network: the one that documents name when they name one network. */
export interface Config extends NetworkConfig, LogSettings {
  /** The settings of every network, the leading one first. */
  readonly networks: readonly NetworkConfig[]
  readonly host: string
  readonly port: number
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Addresses and CIDR ranges of proxies whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
  /** DATA_DIR as an absolute path. */
  readonly dataRoot: string
  /** DATA_DIR/<leading network>-<data mode>. Separate folders ensure that made-up history is never sold as real. */
  readonly dataDir: string
  readonly dataMode: DataMode
  /** The most payments per transaction; 1 settles each on its own. Null: as the settler of the network chooses. */
  readonly settleBatch: number | null
  /** Whether a payment that others send is owed to its payer instead of buying an answer. */
  readonly isStrict: boolean
  /** Factories whose wallets may pay before they are deployed. */
  readonly walletFactories: readonly Hex[]
  /** From this amount on, in atomic units, two nodes must say the same about a settlement. */
  readonly twoNodesFrom: bigint
  /** The token of a plan leaves as soon as its payment is CONFIRM_BLOCKS deep, also where that is less than five. */
  readonly allowShallowPlans: boolean
  /** A gas account that can pay for fewer settlements is low. */
  readonly gasLowSettlements: number
  /** The most wei that the gas of an hour may cost on one network before it is alarming. */
  readonly gasAlarmPerHour: bigint
  /** The share of a price that its settlement may cost, in percent, before it is alarming. */
  readonly gasMaxPercent: number
  /** With less free space for DATA_DIR, in bytes, an alarm is raised. */
  readonly diskLowBytes: number
  readonly quoteGraceSeconds: number
  readonly answerRetentionSeconds: number
  readonly replayDir: string | null
  readonly replayShift: ParsedReplayShift
  readonly tokenKeys: string | null
  /** Unix socket of a signer that the operator runs. Null: the launcher starts one. */
  readonly signerSocket: string | null
  /** The most gas per hour and network that the signer signs for. */
  readonly signerGasPerHour: number
  readonly databaseUrl: string | null
  readonly keyvUrl: string | null
  readonly catalogDir: string
  readonly schemaDir: string
  /** Folders of views: that of the shop, then that of the gateway. One folder in a checkout. */
  readonly viewDirs: readonly string[]
  readonly pluginDirs: readonly string[]
  readonly operatorToken: string | null
  /** Wallets whose payments do not count as revenue, in lower case. */
  readonly ownWallets: readonly string[]
  readonly alertWebhookUrl: string | null
  readonly paymentWebhookUrl: string | null
  /** Sign both webhooks. */
  readonly webhookSecrets: readonly string[]
  readonly sandboxBlockSeconds: number
  /** Returns the value of `env:NAME` in catalog documents, or null if the variable is not set. */
  readonly secret: (name: string) => string | null
  /** All variables as given, to start another process with the same configuration. */
  readonly environment: Environment
}

interface Values {
  [name: string]: string | number | boolean | undefined
}

interface VariableSchema {
  readonly description: string
  readonly type?: string
  readonly default?: string | number | boolean
}

const schema = JSON.parse(readFileSync(join(PROJECT_ROOT, 'schemas', 'config.json'), 'utf8')) as {
  readonly properties: Readonly<Record<string, VariableSchema>>
}

/** The variables of a gateway with certain networks. */
function variablesOf(networks: readonly string[]): Readonly<Record<string, VariableSchema>> {
  const own = ownVariables(networks).map(
    ([name, variable]) => [name, schema.properties[variable] as VariableSchema] as const,
  )
  return { ...schema.properties, ...Object.fromEntries(own) }
}

/** True if the gateway reads a variable itself, at its start. */
export function isSetting(name: string, { networks }: Pick<Config, 'networks'>): boolean {
  const isOwn = name in variablesOf(networks.map(({ network }) => network))
  // A key for a network that is not used is a key all the same.
  return isOwn || isOfSystem(name) || name.startsWith('SETTLE_KEY_')
}

let ajv: Ajv2020 | undefined
const checks = new Map<VariableSchema, ValidateFunction>()

/** The check of one variable, as the field "value". Few are set, and compiling the checks of all takes a start 40 ms. */
function checkOf(variable: VariableSchema): ValidateFunction {
  const known = checks.get(variable)
  if (known) return known
  ajv ??= createAjv(new Map(), { allErrors: true, coerceTypes: true, strict: false })
  const check = ajv.compile({ type: 'object', properties: { value: variable } })
  checks.set(variable, check)
  return check
}

/** The environment as it was read. */
interface ReadValues {
  readonly values: Values
  /** Issues of values, by variable. */
  readonly issues: ReadonlyMap<string, readonly string[]>
}

/**
 * Reads the variables. A text that is not valid stays as it is, and any other value that is not valid counts as absent, so
 * that what is wrong beside it is found too.
 */
function readValues(variables: Readonly<Record<string, VariableSchema>>, environment: Environment): ReadValues {
  const values: Values = {}
  const issues = new Map<string, readonly string[]>()
  for (const [name, variable] of Object.entries(variables)) {
    const text = valueOf(environment, name) ?? ''
    const read: Values = text === '' ? {} : { value: text }
    const check = text === '' ? null : checkOf(variable)
    const isValid: boolean = check === null || check(read)
    if (check && !isValid)
      issues.set(
        name,
        violationsOf(check).map(({ message }) => issueOf(name, message, variable)),
      )
    const kept = isValid || variable.type === 'string' ? read['value'] : undefined
    const value = kept ?? variable.default
    if (value !== undefined) values[name] = value
  }
  return { values, issues }
}

function issueOf(name: string, message: string, { description }: VariableSchema): string {
  const said = `${name} ${message.charAt(0).toLowerCase()}${message.slice(1)}`
  return said.includes(description) ? said : `${said} ${description}`
}

/** The value of a variable without white space around it: secrets that were read from a file often end with a line break. */
function valueOf(environment: Environment, name: string): string | undefined {
  return environment[name]?.trim()
}

/** The variable that an issue begins with; "" if it is about something else. */
function variableIn(issue: string): string {
  return /^[A-Z][A-Z0-9_]*/.exec(issue)?.[0] ?? ''
}

/**
 * Reads the configuration. Throws ConfigError with every issue: invalid values, and settings that production needs
 * (PAY_TO, a settler, https in BASE_URL).
 */
export function readConfig(environment: Environment = processEnvironment()): Config {
  return parse(environment, salesIssues)
}

/**
 * Reads the configuration of a command that only reads or copies what is stored. It needs NETWORK, DATA_MODE and the place
 * of the data, and nothing that money moves with. Throws ConfigError with every issue.
 */
export function readStorageConfig(environment: Environment = processEnvironment()): Config {
  return parse(environment, storageIssues)
}

type Examine = (config: Config, sampleSalesAllowed: boolean) => readonly string[]

function parse(environment: Environment, examine: Examine): Config {
  const names = networkNames(environment['NETWORK'])
  const { values, issues: invalid } = readValues(variablesOf(names), environment)
  const issues: string[] = []
  const text = (name: string): string | null => (values[name] === undefined ? null : String(values[name]))
  const catalogDir = resolve(SHOP_ROOT, text('CATALOG_DIR') ?? 'catalog')
  const { known } = knownNetworks(catalogDir)
  const isTest = (name: string): boolean => name === SANDBOX || known.some((each) => each.name === name && each.isTest)
  const networks = networkConfigs(names, text, isTest)
  const [leading] = networks
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
    networks,
    settleBatch: values['SETTLE_BATCH'] === undefined ? null : Number(values['SETTLE_BATCH']),
    isStrict: text('SETTLEMENT') === 'strict',
    walletFactories: (text('WALLET_FACTORIES') ?? '').split(/[\s,]+/).filter(Boolean) as Hex[],
    twoNodesFrom: BigInt(Math.round(Number(values['TWO_NODES_FROM_USD']) * 1e6)),
    allowShallowPlans: values['ALLOW_SHALLOW_PLANS'] === true,
    gasLowSettlements: Number(values['GAS_LOW_SETTLEMENTS']),
    gasMaxPercent: Number(values['GAS_MAX_PERCENT']),
    gasAlarmPerHour: BigInt(Math.round(Number(values['GAS_ALARM_PER_HOUR']) * 1e9)) * 1_000_000_000n,
    diskLowBytes: Number(values['DISK_LOW_MB']) * 1e6,
    quoteGraceSeconds: Number(values['QUOTE_GRACE_SECONDS']),
    answerRetentionSeconds: Number(values['ANSWER_RETENTION']),
    replayDir: text('REPLAY_DIR') === null ? null : resolve(text('REPLAY_DIR') as string),
    replayShift: replayShiftOf(text('REPLAY_SHIFT') ?? 'auto', issues),
    tokenKeys: text('TOKEN_KEYS'),
    signerSocket: text('SIGNER_SOCKET'),
    signerGasPerHour: Number(values['SIGNER_GAS_PER_HOUR']),
    databaseUrl: withPassword(text('DATABASE_URL'), valueOf(environment, 'PGPASSWORD')),
    keyvUrl: text('KEYV_URL'),
    catalogDir,
    schemaDir: join(SHOP_ROOT, 'schemas'),
    viewDirs: [...new Set([join(SHOP_ROOT, 'views'), join(PROJECT_ROOT, 'views')])],
    pluginDirs: foldersIn(text('PLUGIN_DIRS')),
    operatorToken: text('OPERATOR_TOKEN'),
    ownWallets: ownWalletsOf(text('OWN_WALLETS'), networks),
    alertWebhookUrl: text('ALERT_WEBHOOK_URL'),
    paymentWebhookUrl: text('PAYMENT_WEBHOOK_URL'),
    webhookSecrets: (text('WEBHOOK_SECRET') ?? '').split(/\s+/).filter(Boolean),
    sandboxBlockSeconds: Number(values['SANDBOX_BLOCK_SECONDS']),
    logLevel: text('LOG_LEVEL') ?? 'info',
    logFormat: text('LOG_FORMAT') as Config['logFormat'],
    secret: (name) => valueOf(environment, name) ?? null,
    environment,
  }
  const hasRealMoney = !names.every(isTest)
  issues.push(...(hasRealMoney ? payToIssues(values) : []), ...examine(config, values['ALLOW_SAMPLE_SALES'] === true))
  // Each value is reported once.
  const others = issues.filter((issue) => !invalid.has(variableIn(issue)))
  if (invalid.size + others.length > 0) throw new ConfigError([...[...invalid.values()].flat(), ...others])
  return Object.freeze(config)
}

/**
 * The address of a database with the password in PGPASSWORD, if it has none itself. The client reads that variable in the
 * environment, where the process that runs plugins does not have it.
 */
function withPassword(url: string | null, password = ''): string | null {
  if (url === null || password === '' || !URL.canParse(url)) return url
  const address = new URL(url)
  if (address.password !== '' || address.searchParams.has('password')) return url
  address.password = encodeURIComponent(password)
  if (address.password !== '') return address.href
  // An address of a socket has no place for it before the host. searchParams would write spaces as PostgreSQL does not read them.
  address.search += `${address.search === '' ? '?' : '&'}password=${encodeURIComponent(password)}`
  return address.href
}

/** The folders of PLUGIN_DIRS. An empty entry, as of a variable that is not set, would be the whole project. */
function foldersIn(list: string | null): readonly string[] {
  const named = (list ?? '').split(delimiter).map((folder) => folder.trim())
  const folders = named.filter((folder) => folder !== '')
  return (folders.length > 0 ? folders : ['plugins']).map((folder) => resolve(SHOP_ROOT, folder))
}

/**
 * Parses REPLAY_SHIFT.
 *
 * | Setting         | `seconds` | `frozenAt` |
 * | --------------- | --------- | ---------- |
 * | `auto`          | null      | null       |
 * | `none`          | 0         | null       |
 * | `frozen`        | null      | `start`    |
 * | `frozen:<time>` | 0         | the time   |
 * | a number        | that many | null       |
 *
 * Throws RangeError if the setting is none of these or the time is not valid.
 *
 * @example parseReplayShift('-3600') // { setting: '-3600', seconds: -3600, frozenAt: null }
 */
export function parseReplayShift(setting: string): ParsedReplayShift {
  if (setting === 'auto') return { setting, seconds: null, frozenAt: null }
  if (setting === 'none') return { setting, seconds: 0, frozenAt: null }
  if (setting === 'frozen') return { setting, seconds: null, frozenAt: 'start' }
  if (/^-?\d+$/.test(setting)) return { setting, seconds: Number(setting), frozenAt: null }
  const [, text] = /^frozen:(.+)$/.exec(setting) ?? []
  if (text === undefined) throw new RangeError(`REPLAY_SHIFT: ${setting} is not auto, none, frozen or a number.`)
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new RangeError(`REPLAY_SHIFT: ${text} is not an ISO 8601 time.`)
  return { setting, seconds: 0, frozenAt: time }
}

/** Parses REPLAY_SHIFT. If it is not valid, adds an issue and returns `auto`. */
function replayShiftOf(setting: string, issues: string[]): ParsedReplayShift {
  try {
    return parseReplayShift(setting)
  } catch (error) {
    issues.push((error as RangeError).message)
    return parseReplayShift('auto')
  }
}

/** OWN_WALLETS and every PAY_TO: a payment from a wallet that we are paid to is no revenue. */
function ownWalletsOf(named: string | null, networks: readonly NetworkConfig[]): readonly string[] {
  const wallets = [...(named ?? '').split(/\s+/), ...networks.map(({ payTo }) => payTo ?? '')]
  return [...new Set(wallets.filter(Boolean).map((wallet) => wallet.toLowerCase()))]
}

/** Names addresses that were mistyped. Money paid to such an address is lost: it has no key. */
function payToIssues(values: Values): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    /^PAY_TO(_|$)/.test(name) && isMistyped(String(value))
      ? [`${name}: ${String(value)} is mistyped, as its capital letters show (EIP-55). Copy the address again.`]
      : [],
  )
}

const describe = (name: string): string => schema.properties[name]?.description ?? ''

/** Lists what stored data cannot be found with. */
function storageIssues(config: Config): string[] {
  const { databaseUrl, keyvUrl, networks, catalogDir } = config
  const { known, issues } = knownNetworks(catalogDir)
  const named = networks.filter(({ network }) => network !== SANDBOX)
  return [
    ...addressIssues({ DATABASE_URL: databaseUrl, KEYV_URL: keyvUrl }),
    ...issues,
    ...(issues.length > 0 ? [] : named.flatMap(({ network }) => unknownNetwork(network, known))),
  ]
}

function addressIssues(addresses: Readonly<Record<string, string | null>>): string[] {
  return Object.entries(addresses).flatMap(([name, address]) =>
    // The address may hold a password.
    address !== null && !URL.canParse(address)
      ? [`${name} is not an address. ${describe(name)} Write #, / and @ in a password as %23, %2F and %40.`]
      : [],
  )
}

/** Lists what is missing or contradictory. */
function salesIssues(config: Config, sampleSalesAllowed: boolean): string[] {
  const { alertWebhookUrl, paymentWebhookUrl, webhookSecrets, databaseUrl, keyvUrl } = config
  const webhooks = { ALERT_WEBHOOK_URL: alertWebhookUrl, PAYMENT_WEBHOOK_URL: paymentWebhookUrl }
  const issues = addressIssues({ ...webhooks, DATABASE_URL: databaseUrl, KEYV_URL: keyvUrl })
  if (paymentWebhookUrl !== null && webhookSecrets.length === 0)
    issues.push(`WEBHOOK_SECRET is missing, and PAYMENT_WEBHOOK_URL needs it. ${describe('WEBHOOK_SECRET')}`)
  if (!isSafeAddress(config.baseUrl))
    issues.push(`BASE_URL is ${config.baseUrl}: buyers need https, except on loopback. ${describe('BASE_URL')}`)
  for (const proxy of config.trustedProxies.filter((range) => !isRange(range)))
    issues.push(`TRUSTED_PROXIES: ${proxy} is neither an address nor a CIDR range. ${describe('TRUSTED_PROXIES')}`)
  if (config.dataMode === 'replay' && config.replayDir === null)
    issues.push(`REPLAY_DIR is missing, and DATA_MODE=replay needs it. ${describe('REPLAY_DIR')}`)
  if (config.network === SANDBOX && config.networks.length === 1) return issues
  const { known, issues: fileIssues } = knownNetworks(config.catalogDir)
  if (fileIssues.length > 0) return [...issues, ...fileIssues]
  issues.push(...networkIssues(config.networks, known, describe))
  if (config.isStrict) issues.push(...strictIssues(config.networks))
  const isReal = config.networks.some(({ network }) => known.some(({ name, isTest }) => name === network && !isTest))
  if (isReal && config.dataMode !== 'online' && !sampleSalesAllowed)
    issues.push(
      `DATA_MODE is ${config.dataMode}: only online data may be sold for real money, unless ALLOW_SAMPLE_SALES=true.`,
    )
  return issues
}

/** @example isRange('203.0.113.0/24') → true */
function isRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const maxBits = isIP(address) === 4 ? 32 : 128
  const isBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= maxBits)
  return isIP(address) !== 0 && isBits && rest.length === 0
}

function isSafeAddress(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
