/** Decides which page shows an answer: a view, the 402 page or the error page. Also where a sent form redirects. */
import { valueOf } from '../calls/answers.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { errorBody, InvalidInput, ServiceError } from '../errors.ts'
import type { Network } from '../config/networks.ts'
import { isObject } from '../validation/json.ts'
import { nearestRoutes } from './nearest-routes.ts'
import type { Quote } from '../x402/challenge.ts'

export interface PageContext {
  readonly catalog: Catalog
  readonly operation: Operation | null
  readonly network: Network
  readonly baseUrl: string
  readonly path: string
  /** The query as it was sent, with its question mark, or empty. */
  readonly search: string
  readonly callId: string
  /** True if the caller prefers HTML. */
  readonly browser: boolean
}

/** The fields of an entry of `accepts` that are read here. */
interface Requirement {
  readonly asset: string
  readonly network: string
}

interface Page {
  readonly view: string
  readonly locals: Readonly<Record<string, unknown>>
}

/** Returns the view and its variables for an answer, or null if the answer is sent as data. */
export function pageOf(answer: Answer, context: PageContext): Page | null {
  const { catalog, operation, network, baseUrl, path, search, callId, browser } = context
  const locals = { catalog, service: catalog.service, base_url: baseUrl, path, call_id: callId }
  const { error, quote } = answer
  if (error !== undefined) {
    if (!browser) return null
    const shown = { ...locals, ...errorBody(error), status: answer.status }
    if (error instanceof InvalidInput && operation?.view != null && operation.viewRefusals)
      return { view: operation.view, locals: { ...shown, query: Object.fromEntries(new URLSearchParams(search)) } }
    if (operation === null && answer.status === 404)
      return { view: 'error', locals: { ...shown, nearest: nearestRoutes(path, catalog) } }
    const options = quote ? paymentOptions(quote) : []
    // A free route has a 402 only to ask who calls. It has nothing to pay.
    if (!quote || options.length === 0) return { view: 'error', locals: shown }
    return {
      view: 'payment',
      locals: { ...shown, operation, network, requirements: quote.v2, paymentOptions: options },
    }
  }
  if (operation?.view == null || answer.status >= 300 || !(browser || operation.response === null)) return null
  const value = valueOf(answer)
  const fields = isObject(value) ? value : {}
  return { view: operation.view, locals: { ...fields, ...locals, value } }
}

/** The entries of `accepts` with a readable network name: the x402 v1 name if the network has one, otherwise CAIP-2. */
function paymentOptions({ v1, v2 }: Quote): readonly object[] {
  return (v2['accepts'] as readonly Requirement[]).map((requirement) => {
    const named = v1.accepts.find(({ asset }) => asset === requirement.asset)
    return { ...requirement, name: named?.['network'] ?? requirement.network }
  })
}

/**
 * Returns where to redirect a browser that sent a form. `{field}` is filled from the answer's value, `{code}` and
 * `{message}` from the error: "/report/{rid}" with {rid: "a1"} becomes "/report/a1".
 */
export function formTarget(form: NonNullable<Operation['form']>, answer: Answer): string {
  const { error } = answer
  const template = error instanceof ServiceError ? form.failure : form.success
  const fields: unknown = error instanceof ServiceError ? { code: error.code, message: error.message } : valueOf(answer)
  return template.replace(/\{(\w+)\}/g, (_match, name: string) => {
    const field = (fields as Readonly<Record<string, unknown>> | undefined)?.[name]
    return encodeURIComponent(typeof field === 'string' || typeof field === 'number' ? String(field) : '')
  })
}
