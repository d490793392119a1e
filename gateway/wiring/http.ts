/** The public face: calls over HTTP and MCP. */
import { onNewCatalog } from './editions.ts'
import type { Parts } from './parts.ts'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createLargeBodyReader } from '../calls/large-bodies.ts'
import type { Quotes } from '../calls/quotes.ts'
import type { Config } from '../config/config.ts'
import type { WorkerPool } from '../workers/pool.ts'
import { createHttpServer, type HttpParts } from '../http/app.ts'
import { BodyStorage } from '../http/body-storage.ts'
import { createNameClient } from '../http/client-names.ts'
import { createLimits } from '../http/rate-limit.ts'
import type { ClosingServer } from '../http/server.ts'
import { createLargeMessages } from '../mcp/large-messages.ts'
import type { McpHandler, McpParts } from '../mcp/mcp.ts'
import { once } from '../once.ts'
import { createTestWallet } from '../sandbox/test-wallet.ts'
import type { PauseCheck } from '../products/paused-sales.ts'

/** Bodies of calls with a valid payment need not wait as those of strangers do. */
const PAID_DISK_BYTES_PER_SECOND = 64_000_000

interface HttpOptions extends Pick<HttpParts, 'callers' | 'render' | 'serve' | 'operator' | 'notReady'> {
  readonly quotes: Quotes
  /** What the operator has paused. */
  readonly paused: PauseCheck
  /** Reads large bodies in threads of its own. */
  readonly bodyReaders: WorkerPool
}

/** Wires the HTTP server and the MCP endpoint. Nothing listens yet. */
export function wireHttp(
  { config, editions, settlement, metrics, keys, peers, log }: Parts,
  { bodyReaders, quotes, paused, ...options }: HttpOptions,
): { readonly server: ClosingServer; readonly mcp: McpHandler } {
  const folder = join(config.dataDir, 'bodies')
  const bodies = {
    paid: new BodyStorage({ folder, diskBytesPerSecond: PAID_DISK_BYTES_PER_SECOND }),
    free: new BodyStorage({ folder }),
  }
  const limits = createLimits(undefined, peers)
  const nameClient = createNameClient(keys)
  const mcp = mcpOnDemand({
    limits,
    nameClient,
    // Whether a message is paid is known once it was read.
    bodies: bodies.free,
    largeMessages: createLargeMessages(bodyReaders),
    editions,
    serve: options.serve,
    onEdition: (listener) => onNewCatalog(editions, listener),
    baseUrl: config.baseUrl,
    recipients: settlement,
    log,
  })
  const server = createHttpServer({
    ...options,
    log,
    config,
    editions,
    bodies,
    unpaid: { ...quotes, countOf: metrics.offersOf, isPaused: (operation) => paused.of(operation) !== null },
    readLarge: createLargeBodyReader(bodyReaders),
    nameClient,
    mcp,
    network: settlement.network,
    testWallet: settlement.sandbox && createTestWallet(settlement.sandbox, log),
    limits,
  })
  return { server, mcp }
}

/** The MCP endpoint. It is loaded with its first request, because a start would wait for the schemas of the SDK. */
function mcpOnDemand(parts: McpParts): McpHandler {
  let isLoaded = false
  const load = once(async () => {
    isLoaded = true
    return (await import('../mcp/mcp.ts')).createMcp(parts)
  })
  return {
    handle: async (request, response) => (await load()).handle(request, response),
    close() {
      if (isLoaded) void load().then((mcp) => mcp.close())
    },
  }
}

/** Connections that wait to be accepted. With Node's 511, some of those that come at once after a restart would wait a second. */
const BACKLOG = 4_096

export async function listenOn(server: ClosingServer, { port, host }: Config): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => resolve())
  })
}

export function addressOf(server: ClosingServer, { host }: Config): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
