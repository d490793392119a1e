/**
 * The operator console: its screens, its downloads and its actions. The HTTP side of it, with login
 * and pages, is in gateway/http.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Issue } from '../validation/issue.ts'
import type { Config } from '../config/config.ts'
import { GATEWAY_ROOT, IS_BUILT, SHOP_ROOT } from '../config/project-root.ts'
import type { Edition } from '../products/edition.ts'
import { InvalidInput } from '../errors.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { PausedSales } from '../products/paused-sales.ts'
import type { Revocations } from '../tokens/revocations.ts'
import { exportMonth, MEDIA_TYPES } from './ledger-export.ts'
import { type Ledger, RepaymentError, TRANSACTION_HASH } from './ledger.ts'
import { requestedMonth, type ScreenData } from './operator-screen-data.ts'
import { rowToJson } from './reconciliation/findings.ts'
import type { Reconciliation } from './reconciliation/reconciliation.ts'

/** A page of the console; the same data answers a request for JSON. */
export interface Screen {
  /** Name of the view below views/operator. */
  readonly view: string
  /** Its label in the console's menu. */
  readonly label: string
  data(edition: Edition, query: URLSearchParams): Promise<object>
}

/** A file that is generated while it is sent. */
export interface Download {
  readonly type: string
  readonly name: string
  readonly text: AsyncIterable<string>
}

/** The fields of a form or of a JSON body. */
export type Fields = Readonly<Record<string, unknown>>

/** Something an operator does by POST. */
export interface Action {
  run(fields: Fields, edition: Edition): Promise<object>
  /** Where a browser goes afterwards. Absent: the result is shown in place. */
  readonly back?: string
  /** The screen that shows the result in place. */
  readonly screen?: Screen
}

/** Screens, downloads and actions by path. A download throws InvalidInput for a query it does not understand. */
export interface OperatorScreens {
  readonly screens: Readonly<Record<string, Screen>>
  readonly downloads: Readonly<Record<string, (query: URLSearchParams) => Download>>
  readonly actions: Readonly<Record<string, Action>>
}

export interface OperatorScreenParts {
  /** The data that the screens show. */
  readonly data: ScreenData
  readonly ledger: Ledger
  readonly revocations: Pick<Revocations, 'revoke'>
  readonly paused: Pick<PausedSales, 'pause' | 'resume'>
  /** Null if there is no node to read the chain from. */
  readonly reconciliation: Reconciliation | null
  readonly config: Pick<Config, 'environment'>
  readonly log: Logger
  readonly now: () => Date
}

const NOTE = /^[^\p{C}]{0,200}$/u
const PAYMENT_KEY = /^[\w:/-]{1,300}$/
/** The id of a product or an operation. */
const SOLD_NAME = /^[A-Za-z0-9-]{1,100}$/
const TOKEN_ID = /^[\w-]{1,128}$/
const MAX_ROWS = 100

/** Creates the screens, downloads and actions of the console, by path. */
export function createOperatorScreens(parts: OperatorScreenParts): OperatorScreens {
  const { data, ledger, revocations, paused, reconciliation, config, log, now } = parts
  const catalog: Screen = { view: 'catalog', label: 'Catalog', data: data.catalogState }

  return {
    screens: {
      '/operator': { view: 'overview', label: 'Money', data: data.overview },
      '/operator/ledger': { view: 'ledger', label: 'Ledger', data: (_edition, query) => data.ledger(query) },
      '/operator/payments': { view: 'payments', label: 'Payments', data: (_edition, query) => data.payments(query) },
      '/operator/routes': { view: 'routes', label: 'Routes', data: data.routes },
      '/operator/products': { view: 'products', label: 'Products', data: data.products },
      '/operator/subscriptions': { view: 'subscriptions', label: 'Subscriptions', data: data.subscriptions },
      '/operator/reconciliation': { view: 'reconciliation', label: 'Reconciliation', data: data.reconciliation },
      '/operator/prices': { view: 'prices', label: 'Prices', data: data.priceChanges },
      '/operator/catalog': catalog,
    },
    downloads: { '/operator/ledger/export': (query) => exportOf(ledger, query, now()) },
    actions: {
      '/operator/ledger/repaid': { back: '/operator/ledger', run: (fields) => repay(ledger, fields) },
      '/operator/products/pause': {
        back: '/operator/products',
        async run(fields, { catalog }) {
          const name = textField(fields, 'name', SOLD_NAME)
          const reason = fields['reason'] === undefined ? '' : textField(fields, 'reason', NOTE).trim()
          if (!catalog.operations.has(name) && !catalog.products.some(({ id }) => id === name))
            throw new InvalidInput('is no product and no operation', ['body', 'name'])
          await paused.pause(name, reason)
          log.info({ name, reason }, 'sales paused')
          return { paused: name, reason }
        },
      },
      '/operator/products/resume': {
        back: '/operator/products',
        async run(fields) {
          const name = textField(fields, 'name', SOLD_NAME)
          await paused.resume(name)
          log.info({ name }, 'sales resumed')
          return { resumed: name }
        },
      },
      '/operator/subscriptions/revoke': {
        back: '/operator/subscriptions',
        async run(fields) {
          const id = textField(fields, 'id', TOKEN_ID)
          await revocations.revoke(id, 'by the operator')
          log.info({ subscription: id }, 'access token revoked')
          return { revoked: id }
        },
      },
      '/operator/reconciliation/run': {
        back: '/operator/reconciliation',
        async run() {
          if (!reconciliation) return { available: false, comparison: null, rows: [] }
          const comparison = await reconciliation.run()
          return { available: true, comparison, rows: (await reconciliation.rows(MAX_ROWS)).map(rowToJson) }
        },
      },
      '/operator/catalog/check': {
        screen: catalog,
        run: async (_fields, edition) => ({
          ...(await data.catalogState(edition)),
          check: await checkCatalog(config),
        }),
      },
    },
  }
}

function exportOf(ledger: Ledger, query: URLSearchParams, now: Date): Download {
  const month = requestedMonth(query, now)
  const format = query.get('format') ?? 'csv'
  if (format !== 'csv' && format !== 'json') throw new InvalidInput('must be csv or json', ['query', 'format'])
  return {
    type: MEDIA_TYPES[format],
    name: `ledger-${month.name}.${format}`,
    text: exportMonth(ledger, month, format),
  }
}

/** Records that the operator sent the money of a debt back. */
async function repay(ledger: Ledger, fields: Fields): Promise<{ readonly repaid: string; readonly note: string }> {
  const transaction = textField(fields, 'transaction', TRANSACTION_HASH)
  const by = fields['by'] === undefined || fields['by'] === '' ? null : textField(fields, 'by', TRANSACTION_HASH)
  const text = fields['note'] === undefined ? '' : textField(fields, 'note', NOTE)
  const payment = fields['payment'] === undefined ? null : textField(fields, 'payment', PAYMENT_KEY)
  const note = [by, text.trim()].filter(Boolean).join(' ') || 'by the operator'
  try {
    const debt = await ledger.repay({ transaction, note, ...(payment === null ? {} : { payment }) })
    return { repaid: debt.key, note }
  } catch (error) {
    if (error instanceof RepaymentError) throw new InvalidInput(error.message, ['body', 'transaction'])
    throw error
  }
}

/** Reads a text field of a form. Throws InvalidInput if it is missing or does not match. */
function textField(fields: Fields, name: string, pattern: RegExp): string {
  const value = fields[name]
  if (typeof value !== 'string' || !pattern.test(value))
    throw new InvalidInput('is missing or malformed', ['body', name])
  return value
}

interface CatalogCheck {
  readonly ok: boolean
  /** Null if there is no catalog at all. */
  readonly version: string | null
  readonly mistakes: readonly Issue[]
  readonly operations: number
}

const CHECK_TIMEOUT_MS = 120_000
const MAX_CHECK_BYTES = 16_000_000

/**
 * Runs `npm run check` over the files as they are now. It is a process of its own, so that neither a faulty plugin nor
 * the work of building an edition affects the running gateway. Throws if the check cannot run.
 */
async function checkCatalog({ environment }: Pick<Config, 'environment'>): Promise<CatalogCheck> {
  const check = join(GATEWAY_ROOT, 'scripts', 'check')
  const command = IS_BUILT ? [`${check}.js`] : ['--import', 'tsx/esm', `${check}.ts`]
  const options = { cwd: SHOP_ROOT, env: environment, timeout: CHECK_TIMEOUT_MS, maxBuffer: MAX_CHECK_BYTES }
  const text = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, [...command, '--json'], options, (error, stdout) => {
      // The check exits with 1 if it finds issues; its output is still complete.
      if (stdout.startsWith('{')) resolve(stdout)
      else reject(error ?? new Error('The catalog check printed nothing.'))
    })
  })
  const { ok, version, mistakes, operations } = JSON.parse(text) as Omit<CatalogCheck, 'operations'> & {
    readonly operations: readonly unknown[]
  }
  return { ok, version, mistakes, operations: operations.length }
}
