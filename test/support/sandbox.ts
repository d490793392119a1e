/** A real gateway on its real sandbox chain, for tests with real clients. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway, type Gateway } from '../../gateway/compose.ts'
import type { Sandbox } from '../../gateway/sandbox/sandbox.ts'
import { balanceOf } from './chain.ts'
import { copyFirstStart } from './first-start.ts'
import { freePort } from './gateway.ts'

export interface SandboxGateway {
  readonly gateway: Gateway
  readonly url: string
  readonly sandbox: Sandbox
  readonly buyer: ReturnType<typeof privateKeyToAccount>
  /** Returns what moved on the chain since the last call, in atomic units. */
  moved(): Promise<{ readonly buyer: bigint; readonly payee: bigint }>
  close(): Promise<void>
}

const shop = resolve(import.meta.dirname, '../fixtures/shop')
/** The small catalog of the fixtures, instead of our own. */
export const SHOP = { CATALOG_DIR: join(shop, 'catalog'), PLUGIN_DIRS: join(shop, 'plugins') }

/** Opens the project's own catalog, with the data that its first start computes, or another catalog by `environment`. */
export async function openSandboxGateway(environment?: Readonly<Record<string, string>>): Promise<SandboxGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-sandbox-'))
  const place = { PORT: String(await freePort()), DATA_DIR: dataDir, LOG_LEVEL: 'silent' }
  if (!environment) await copyFirstStart(place)
  const config = readConfig({ ...place, ...environment })
  const gateway = await createGateway(config)
  const url = await gateway.listen()
  const sandbox = gateway.settlement.sandbox as Sandbox
  const balances = async () => ({
    buyer: await balanceOf(sandbox.rpcUrl, sandbox.buyer.address),
    payee: await balanceOf(sandbox.rpcUrl, sandbox.payTo),
  })
  let last = await balances()
  return {
    gateway,
    url,
    sandbox,
    buyer: privateKeyToAccount(sandbox.buyer.privateKey),
    async moved() {
      const before = last
      last = await balances()
      return { buyer: last.buyer - before.buyer, payee: last.payee - before.payee }
    },
    async close() {
      await gateway.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
