/**
 * A real gateway for tests: everything in memory, a clock that can be advanced, a scripted settler that really checks
 * signatures, and a real wallet.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Config, readConfig } from '../../gateway/config/config.ts'
import { createGateway, type Gateway, type Overrides } from '../../gateway/compose.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { NETWORKS, type Hex } from '../../gateway/config/networks.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { createScriptedSettler } from './settler.ts'
import { until } from './until.ts'

export { freePort, until }

export const PAY_TO: Hex = '0x00000000000000000000000000000000000000A1'
const fixtures = resolve(import.meta.dirname, '../fixtures')

export interface TestGateway {
  readonly gateway: Gateway
  readonly url: string
  readonly settler: ReturnType<typeof createScriptedSettler>
  readonly wallet: ReturnType<typeof newWallet>
  /** Advances the clock. */
  advance(seconds: number): void
  now(): Date
  close(): Promise<void>
}

/** Resolves with the next request that the gateway receives, and its response. Call it before the request is sent. */
export async function nextRequest({
  gateway,
}: TestGateway): Promise<{ readonly request: IncomingMessage; readonly response: ServerResponse }> {
  const [request, response] = (await once(gateway.server, 'request')) as [IncomingMessage, ServerResponse]
  return { request, response }
}

export function newWallet() {
  return privateKeyToAccount(generatePrivateKey())
}

/**
 * Opens the shop of test/fixtures on a free port, or another catalog by `environment`. `changes` override configuration
 * that has no environment variable.
 */
export async function openGateway(
  environment: Readonly<Record<string, string>> = {},
  overrides: Overrides = {},
  changes: Partial<Config> = {},
): Promise<TestGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-'))
  const port = await freePort()
  const read = readConfig({
    PORT: String(port),
    DATA_DIR: dataDir,
    LOG_LEVEL: 'silent',
    CATALOG_DIR: join(fixtures, 'shop/catalog'),
    PLUGIN_DIRS: join(fixtures, 'shop/plugins'),
    ...environment,
  })
  const config = { ...read, ...changes }
  let offset = 0
  const now = (): Date => new Date(Date.now() + offset)
  const network = NETWORKS['base-sepolia']
  const settler = createScriptedSettler({ network, now })
  const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: async () => {} }
  const gateway = await createGateway(config, {
    settlement,
    now,
    inMemory: true,
    log: createLog('silent'),
    ...overrides,
  })
  const url = await gateway.listen()
  return {
    gateway,
    url,
    settler,
    wallet: newWallet(),
    advance: (seconds) => {
      offset += seconds * 1000
    },
    now,
    async close() {
      try {
        await gateway.close()
      } finally {
        rmSync(dataDir, { recursive: true, force: true })
      }
    },
  }
}
