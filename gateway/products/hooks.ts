/**
 * Hooks: plugins that decide who may buy, or are told of payments. hooks.json of the catalog names them. A hook that cannot
 * be set up keeps an edition from being built, so that a mistake never opens the shop to those whom it keeps out.
 */
import type { CatalogDocument } from '../catalog/documents.ts'
import { ServiceError } from '../errors.ts'
import { firstLineOf, loadPluginOnce, PluginError, type PluginLoads, type PluginSources } from '../plugin-code/load.ts'
import { TimedOut } from '../plugin-code/start-timeout.ts'
import type { Hook, HookRegistration, Logger, Plugin, Registration, ScreenedPayment } from '../plugin/plugin.ts'
import { CatalogError, type Issue, pointerOf } from '../validation/issue.ts'
import type { ServedHook } from './edition.ts'
import { Instance, SETUP_FAILED, type SetupOptions, setUpWithTimeout } from './instantiate.ts'
import { readSettings } from './settings.ts'

/** A hook that is set up. */
export interface ReadyHook extends ServedHook {
  /** Stops the hook when no edition uses it any more. */
  readonly instance: Instance
}

/** An entry of hooks.json. schemas/catalog/hooks.json describes the fields. */
interface Entry {
  readonly plugin: string
  readonly settings?: Readonly<Record<string, unknown>>
  readonly on_failure?: 'closed' | 'open'
  readonly timeout_seconds?: number
}

interface HookOptions
  extends PluginSources, Pick<SetupOptions, 'contextOf' | 'migrate' | 'secret' | 'log' | 'now' | 'onLate'> {
  readonly setupSeconds: number
  readonly loads: PluginLoads
  /** Hooks of the gateway itself. They are found before any folder is searched. */
  readonly builtInHooks?: readonly Hook[]
}

const DEFAULT_TIMEOUT_SECONDS = 2
/** When a caller may try again whose payment could not be screened. */
const RETRY_SECONDS = 10

/** The plugins that a list of hooks names. */
export function namedHooks({ content }: Pick<CatalogDocument, 'content'>): readonly string[] {
  const entries = Array.isArray(content['hooks']) ? (content['hooks'] as readonly unknown[]) : []
  return entries.flatMap((entry) => {
    const { plugin } = Object(entry) as Partial<Entry>
    return typeof plugin === 'string' ? [plugin] : []
  })
}

/**
 * Sets up the hooks of hooks.json, which is valid or missing. A hook of the previous edition whose code and settings are the
 * same is kept.
 * @throws CatalogError if one cannot be set up
 */
export async function setUpHooks(
  documents: readonly CatalogDocument[],
  former: readonly ReadyHook[],
  options: HookOptions,
): Promise<readonly ReadyHook[]> {
  const listed = documents.find(({ kind }) => kind === 'hooks')
  if (!listed) return []
  const { file, content } = listed
  const entries = content['hooks'] as readonly Entry[]
  const results = await Promise.all(
    entries.map((entry, at) =>
      setUpHook(entry, former, options).catch((error: unknown) => issuesOf(error, file, pointerOf('hooks', at))),
    ),
  )
  const issues = results.flatMap((result) => ('instance' in result ? [] : result))
  const hooks = results.flatMap((result) => ('instance' in result ? [result] : []))
  if (issues.length === 0) return hooks
  const created = hooks.filter(({ instance }) => !former.some((kept) => kept.instance === instance))
  await Promise.all(created.map(async ({ registration }) => registration.stop?.()))
  throw new CatalogError(issues)
}

/** A hook cannot be set up, for reasons that the issues say. */
class HookError extends Error {
  readonly issues: readonly Omit<Issue, 'file'>[]
  constructor(issues: readonly Omit<Issue, 'file'>[]) {
    super('a hook cannot be set up')
    this.issues = issues
  }
}

function issuesOf(error: unknown, file: string, place: string): readonly Issue[] {
  if (error instanceof HookError)
    return error.issues.map((issue) => ({ ...issue, file, pointer: place + issue.pointer }))
  if (error instanceof PluginError)
    return [{ file, pointer: `${place}/plugin`, rule: 'plugin', message: error.message }]
  throw error
}

async function setUpHook(entry: Entry, former: readonly ReadyHook[], options: HookOptions): Promise<ReadyHook> {
  const { plugin: name, on_failure: onFailure, timeout_seconds: timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = entry
  const builtIn = options.builtInHooks?.find((each) => each.name === name)
  // Whether `setup` returns what it should is checked for hooks as it is for products.
  const plugin = (builtIn as Plugin | undefined) ?? (await loadPluginOnce(name, options.loads, options))
  const given = { file: '', settings: entry.settings ?? {} }
  const { settings, issues } = readSettings(given, plugin.settings, { secret: options.secret, isChecked: false })
  if (issues.length > 0) throw new HookError(issues)
  const key = JSON.stringify(settings)
  const kept = former.find(({ instance }) => instance.plugin === plugin && instance.key === key)
  const made = kept ?? (await instantiate(plugin, name, key, settings, options))
  return { ...made, name, isOpenOnFailure: onFailure === 'open', timeoutMs: timeoutSeconds * 1000 }
}

async function instantiate(
  plugin: Plugin,
  name: string,
  key: string,
  settings: Readonly<Record<string, unknown>>,
  options: HookOptions,
): Promise<Pick<ReadyHook, 'registration' | 'instance'>> {
  const { log, now, contextOf, migrate } = options
  const failed = (rule: string, message: string): HookError =>
    new HookError([{ pointer: '/plugin', rule, message: `The hook ${name} ${message}` }])
  const setUp = async (): Promise<HookRegistration> => {
    await migrate(plugin.name, plugin.migrations ?? [])
    return (plugin as Hook).setup(contextOf(plugin.name, `hooks/${plugin.name}`, settings))
  }
  let registration: HookRegistration
  try {
    // What is set up late is kept in one place for products and hooks, which only calls `stop` of it.
    const run = setUp as () => Promise<unknown> as () => Promise<Registration>
    registration = await setUpWithTimeout(plugin, `hook ${key}`, options, run)
  } catch (error) {
    log.error({ err: error, hook: name }, 'a hook could not be set up')
    if (error instanceof TimedOut) throw failed('setup', firstLineOf(error))
    throw failed(SETUP_FAILED, `could not be set up: ${firstLineOf(error)}`)
  }
  const { screen, settled, refused } = Object(registration) as Partial<HookRegistration>
  if (![screen, settled, refused].some((each) => typeof each === 'function')) {
    const message = 'has returned neither screen nor settled nor refused from setup. Return { screen }, for example.'
    throw failed('hooks', message)
  }
  const own = { product: `hooks/${plugin.name}`, plugin, key, handlers: {}, log, now }
  const instance = new Instance({ ...own, registration, lease: undefined, breakers: undefined, timers: undefined })
  return { registration, instance }
}

/**
 * Asks each hook in turn whether a payment may be taken.
 * @throws ServiceError `payer_refused` if one refuses it, `screening_unavailable` if one that is to be closed on failure fails
 */
export async function screen(
  hooks: readonly ServedHook[],
  payment: Omit<ScreenedPayment, 'signal'>,
  log: Logger,
): Promise<void> {
  for (const { name, registration, isOpenOnFailure, timeoutMs } of hooks) {
    if (!registration.screen) continue
    let refusal: string | null
    try {
      const verdict = await withTimeout(timeoutMs, (signal) => registration.screen?.({ ...payment, signal }))
      refusal = refusalIn(verdict)
    } catch (error) {
      const fields = { err: error, hook: name, call: payment.call, payer: payment.payer }
      log.error(fields, `a hook could not screen a payment, which ${isOpenOnFailure ? 'passes' : 'is refused'}`)
      if (isOpenOnFailure) continue
      const headers = { 'retry-after': String(RETRY_SECONDS) }
      throw new ServiceError('screening_unavailable', undefined, { headers, cause: error })
    }
    if (refusal !== null) {
      log.info({ hook: name, call: payment.call, payer: payment.payer }, 'a hook refused a payer')
      throw new ServiceError('payer_refused', `${refusal} Nothing was charged.`)
    }
  }
}

/** The sentence of a refusal; null if the payment may be taken. Throws if a hook has answered anything else. */
function refusalIn(verdict: unknown): string | null {
  const { allow, refuse } = Object(verdict) as { readonly allow?: unknown; readonly refuse?: unknown }
  if (allow === true && refuse === undefined) return null
  if (typeof refuse === 'string' && refuse.trim() !== '' && allow === undefined) return refuse
  throw new Error('screen has answered neither { allow: true } nor { refuse: "a sentence" }')
}

/** Runs code of a hook, which may take this long, whether or not it heeds its signal. */
export async function withTimeout<Value>(
  ms: number,
  run: (signal: AbortSignal) => Value | Promise<Value>,
): Promise<Value> {
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`no answer within ${ms / 1000} seconds`)
      reject(error)
      abort.abort(error)
    }, ms)
  })
  try {
    return await Promise.race([run(abort.signal), timeout])
  } finally {
    clearTimeout(timer)
  }
}
