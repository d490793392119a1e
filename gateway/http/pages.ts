/** The HTML side of an answer: views, the 402 and error pages for browsers, and where a form leads. */
import type { Answer } from '../calls/call.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Network } from '../config/networks.ts'
import type { Quote } from '../x402/quotes.ts'

export interface PageContext {
  readonly catalog: Catalog
  readonly operation: Operation | null
  readonly network: Network
  readonly baseUrl: string
  readonly path: string
  readonly callId: string
  /** The caller is a browser. */
  readonly browser: boolean
}

interface Entry {
  readonly asset: string
  readonly network: string
}

interface Page {
  readonly view: string
  readonly locals: Readonly<Record<string, unknown>>
}

/** The page an answer is shown as, or null where it goes out as it is. */
export function pageOf(answer: Answer, context: PageContext): Page | null {
  const { catalog, operation, network, baseUrl, path, callId, browser } = context
  const locals = { catalog, service: catalog.service, base_url: baseUrl, path, call_id: callId }
  const { error, quote, value } = answer
  if (error !== undefined) {
    if (!browser) return null
    const shown = { ...locals, ...errorBody(error), status: answer.status }
    if (!quote) return { view: 'error', locals: shown }
    return {
      view: 'payment',
      locals: { ...shown, operation, network, requirements: quote.v2, asked: askedIn(quote) },
    }
  }
  if (operation?.view == null || answer.status >= 300 || !(browser || operation.response === null)) return null
  const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  return { view: operation.view, locals: { ...fields, ...locals, value } }
}

/** What is asked on each network, with the network's name: x402 v1 has it, and where it has none CAIP-2 will do. */
function askedIn({ v1, v2 }: Quote): readonly object[] {
  const [named, all] = [v1['accepts'], v2['accepts']] as [readonly Entry[], readonly Entry[]]
  return all.map((offer) => {
    const { network: name } = named.find(({ asset }) => asset === offer.asset) ?? offer
    return { ...offer, name }
  })
}

/**
 * Where a browser goes after it sent a form. `{field}` is filled from the answer's value, `{code}` and `{message}` from
 * the error: "/report/{rid}" and {rid: "a1"} is "/report/a1".
 */
export function formTarget(form: NonNullable<Operation['form']>, { error, value }: Answer): string {
  const template = error instanceof ServiceError ? form.failure : form.success
  const fields: unknown = error instanceof ServiceError ? { code: error.code, message: error.message } : value
  return template.replace(/\{(\w+)\}/g, (_match, name: string) => {
    const field = (fields as Readonly<Record<string, unknown>> | undefined)?.[name]
    return encodeURIComponent(typeof field === 'string' || typeof field === 'number' ? String(field) : '')
  })
}
