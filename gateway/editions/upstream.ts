/** A product without code: its operations are answered by an address of ours, JSON for JSON. */
import type { Operation, Product, Upstream } from '../catalog/catalog.ts'
import { paramsOf } from '../catalog/route.ts'
import { InvalidInput, NotFound, ServiceError, Unavailable } from '../errors.ts'
import type { Call, Handler } from '../plugin.ts'

/** `headers` with their secrets already in place. One handler per operation of the product. */
export function createUpstream(product: Product, headers: Readonly<Record<string, string>>): Record<string, Handler> {
  const upstream = product.upstream as Upstream
  return Object.fromEntries(
    product.operations.map((operation) => [
      operation.handler,
      (call: Call) => forward(upstream, headers, operation, call),
    ]),
  )
}

async function forward(
  upstream: Upstream,
  headers: Readonly<Record<string, string>>,
  { method }: Operation,
  { input, signal }: Call,
): Promise<unknown> {
  const hasBody = input.body !== undefined
  const timeout = AbortSignal.timeout(upstream.timeoutSeconds * 1000)
  let response: Response
  try {
    response = await fetch(address(upstream.url, input), {
      method,
      headers: { accept: 'application/json', ...(hasBody ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(hasBody ? { body: JSON.stringify(input.body) } : {}),
      redirect: 'manual',
      signal: AbortSignal.any([signal, timeout]),
    })
    if (response.ok) return parsed(await text(response, upstream.maxBytes))
    await response.body?.cancel()
  } catch (error) {
    if (error instanceof ServiceError) throw error
    if (timeout.aborted) throw new ServiceError('product_timeout', undefined, { cause: error })
    throw new Error('the upstream could not be reached', { cause: error })
  }
  throw refusal(response)
}

/** The upstream's address with path parameters encoded and the query of the call added. */
function address(template: string, { params, query }: Call['input']): URL {
  let filled = template
  for (const name of paramsOf(template)) {
    const value = String(params[name])
    if (/^\.{0,2}$/.test(value)) throw new InvalidInput('Must name something.', ['path', name])
    filled = filled.replaceAll(`{${name}}`, () => encodeURIComponent(value))
  }
  const url = new URL(filled)
  for (const [name, value] of Object.entries(query))
    for (const item of [value].flat()) url.searchParams.append(name, String(item))
  return url
}

async function text(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) throw new Error(`the upstream sent more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch (error) {
    throw new Error('the upstream did not answer JSON', { cause: error })
  }
}

/** A redirect could lead anywhere with our secrets, so it is a failure like any other status. */
function refusal({ status, headers }: Response): Error {
  if (status === 404) return new NotFound()
  const seconds = Number(headers.get('retry-after') ?? 60)
  if (status === 429 || status === 503) return new Unavailable(undefined, Number.isFinite(seconds) ? seconds : 60)
  return new Error(`the upstream answered ${status}`)
}
