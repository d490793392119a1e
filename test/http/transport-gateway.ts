/**
 * A small gateway for tests of the transports: real HTTP, MCP, views and answers over an edition written by hand. Its
 * `serve` answers 402 without a credential, records each call and runs the handler. Payments are tested elsewhere.
 */
import { AnswerBody } from '../../gateway/plugin/answer-body.ts'
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerOf, errorAnswer } from '../../gateway/calls/answers.ts'
import type { Answer, CallRequest } from '../../gateway/calls/request-and-answer.ts'
import { bodyRulesOf } from '../../gateway/catalog/large-body.ts'
import type { Catalog, Operation } from '../../gateway/plugin/catalog.ts'
import { Views } from '../../gateway/products/views.ts'
import type { BoundOperation, Edition, RawInput } from '../../gateway/products/edition.ts'
import { ServiceError } from '../../gateway/errors.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { Quote } from '../../gateway/x402/challenge.ts'
import type { JsonSchema, Logger } from '../../gateway/plugin/plugin.ts'
import { createHttpServer, type HttpParts } from '../../gateway/http/app.ts'
import { BodyStorage, type BodyStorageOptions } from '../../gateway/http/body-storage.ts'
import { CallerAddresses } from '../../gateway/http/caller-address.ts'
import { createLimits, type Limit } from '../../gateway/http/rate-limit.ts'
import { createMcp } from '../../gateway/mcp/mcp.ts'
import { createRenderer } from '../../gateway/http/render.ts'

export const BASE_URL = 'http://shop.example'
export const NETWORK = NETWORKS['base-sepolia']
export const RECIPIENT = { network: NETWORK, payTo: '0x00000000000000000000000000000000000000A1' } as const

/** One call, as the transport passed it to `serve`. */
export interface RecordedCall {
  readonly operation: string
  readonly request: CallRequest
  readonly raw: RawInput
}

export type Handle = (recorded: RecordedCall) => unknown

/** An operation with its handler. */
export interface Route {
  readonly operation: Operation
  readonly handle: Handle
}

/** Returns an operation with the defaults of the catalog, which is free, has no input and answers its own id. */
export function route(
  id: string,
  route: string,
  changes: Partial<Operation> = {},
  handle: Handle = () => ({ id }),
): Route {
  const [method, path] = route.split(' ') as [Operation['method'], string]
  const operation: Operation = {
    id,
    product: 'shop',
    family: null,
    tags: [],
    method,
    path,
    route,
    displayRoute: route,
    summary: `Answers ${id}.`,
    description: '',
    price: null,
    priceText: 'free',
    params: null,
    query: null,
    body: null,
    bodyMedia: [],
    response: {},
    rows: null,
    chart: null,
    view: null,
    viewRefusals: false,
    form: null,
    tool: null,
    readOnly: method === 'GET',
    maxFreshnessSeconds: 0,
    fresh: null,
    sellEmpty: true,
    trial: null,
    limit: null,
    timeoutSeconds: 10,
    queue: 'free',
    costPerMegabyte: 0,
    maxBytes: 1000,
    cacheSeconds: 0,
    handler: id,
    upstream: null,
    listed: true,
    internal: false,
    example: null,
    wait: 'submitted',
    identifier: 'optional',
    accepts: null,
    retired: false,
    replacement: null,
    plan: null,
    ...changes,
  }
  return { operation, handle }
}

export const PRICED = { price: 5000n, priceText: '0.005' } as const

export function editionOf(
  routes: readonly Route[],
  schemas: ReadonlyMap<string, JsonSchema> = new Map(),
): Edition & { readonly handlers: ReadonlyMap<string, Handle> } {
  const operations = new Map(routes.map(({ operation }) => [operation.id, operation]))
  const service = {
    name: 'shop',
    title: 'Shop',
    summary: 'Sells echoes.',
    description: '',
    version: '1.0.0',
    notes: [],
  }
  const plans = { path: null, model: '', note: '', enabled: false, plans: [] }
  const catalog: Catalog = { version: 'v1', service, products: [], operations, plans, schemas }
  const bindings = routes.map(({ operation }): [string, BoundOperation] => [
    operation.id,
    {
      operation,
      validate: (raw) => raw,
      bodyRules: () => bodyRulesOf(operation, schemas),
      handle: () => Promise.reject(new Error('this gateway runs its handlers in serve')),
      assertAvailable: () => {},
    },
  ])
  return {
    catalog,
    bound: new Map(bindings),
    handlers: new Map(routes.map(({ operation, handle }) => [operation.id, handle])),
    disabled: [],
    hooks: [],
    views: new Views({ viewDirs: [] }),
    schemaKeys: [],
    documentKeys: [],
    status: () => [],
    freshness: () => [],
    facts: async () => ({}),
    start: () => {},
    stopJobs: async () => {},
    stop: async () => {},
  }
}

export function quoteOf(operation: Operation, url: string, error: ServiceError): Quote {
  const v2 = { x402Version: 2, error: error.code, resource: { url }, accepts: [{ amount: String(operation.price) }] }
  const v1 = { x402Version: 1, error: error.code, accepts: [{ maxAmountRequired: String(operation.price) }] }
  return { header: Buffer.from(JSON.stringify(v2)).toString('base64'), v2, v1: { ...v1, code: error.code } }
}

export interface TransportGateway {
  readonly url: string
  readonly port: number
  readonly server: Server
  /** Where the bodies of free routes are kept. */
  readonly bodies: BodyStorage
  /** Every call of `serve`, including unpaid ones. */
  readonly requests: CallRequest[]
  /** The calls whose handler ran. */
  readonly calls: RecordedCall[]
  swap(routes: readonly Route[]): void
  close(): Promise<void>
}

export interface TransportGatewayOptions {
  readonly limit?: Limit
  /** How many event streams may be open, and as many notification streams. */
  readonly maxStreams?: number
  readonly trustedProxies?: readonly string[]
  readonly views?: Readonly<Record<string, string>>
  /** Changes an answer before it is sent, as settlement would. */
  readonly settle?: (answer: Answer, recorded: RecordedCall) => Answer
  readonly schemas?: ReadonlyMap<string, JsonSchema>
  readonly bodies?: BodyStorageOptions
  readonly restTimes?: HttpParts['restTimes']
  readonly log?: Logger
}

export async function openTransportGateway(
  routes: readonly Route[],
  options: TransportGatewayOptions = {},
): Promise<TransportGateway> {
  const viewDir = mkdtempSync(join(tmpdir(), 'views-'))
  mkdirSync(join(viewDir, 'assets'))
  for (const [name, text] of Object.entries(options.views ?? {})) writeFileSync(join(viewDir, name), text)
  const views = new Views({ viewDirs: [viewDir] })
  let edition = editionOf(routes, options.schemas)
  const requests: CallRequest[] = []
  const calls: RecordedCall[] = []
  const listeners = new Set<(edition: Edition) => void>()

  async function answer(bound: BoundOperation, request: CallRequest): Promise<Answer> {
    const { operation } = bound
    requests.push(request)
    try {
      if (operation.price !== null && !request.credential) throw new ServiceError('payment_required')
      const raw = await request.read()
      const recorded = { operation: operation.id, request, raw }
      calls.push(recorded)
      const answer = answerOf(await edition.handlers.get(operation.id)?.(recorded))
      if (answer.events) request.takeStreamPlace?.(false)
      return options.settle?.(answer, recorded) ?? answer
    } catch (error) {
      const refusal = errorAnswer(error, request.id)
      if (refusal.status !== 402) return refusal
      const quote = quoteOf(operation, request.url, refusal.error as ServiceError)
      return { ...refusal, quote, body: AnswerBody.of(JSON.stringify(quote.v1)) }
    }
  }

  const parts = {
    editions: {
      get current() {
        return edition
      },
    },
    serve: (_edition: Edition, bound: BoundOperation, request: CallRequest) => answer(bound, request),
    limits: createLimits(options.limit),
    nameClient: (address: string) => address,
    network: NETWORK,
    log: options.log ?? createLog('silent'),
  }
  const onEdition = (listener: (edition: Edition) => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const bodies = new BodyStorage(options.bodies)
  const places = options.maxStreams ? { maxStreams: options.maxStreams } : {}
  const mcp = createMcp({ ...parts, ...places, bodies, recipients: RECIPIENT, baseUrl: BASE_URL, onEdition })
  const server = createHttpServer({
    ...parts,
    bodies: { paid: new BodyStorage(), free: bodies },
    config: { baseUrl: BASE_URL, viewDirs: [viewDir] },
    callers: new CallerAddresses({
      baseUrl: BASE_URL,
      trustedProxies: options.trustedProxies ?? [],
      log: parts.log,
    }),
    render: createRenderer(() => views),
    mcp,
    ...(options.restTimes ? { restTimes: options.restTimes } : {}),
    ...places,
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server,
    bodies,
    requests,
    calls,
    swap(next) {
      edition = editionOf(next, options.schemas)
      for (const listener of listeners) listener(edition)
    },
    async close() {
      mcp.close()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
      rmSync(viewDir, { recursive: true, force: true })
    },
  }
}
