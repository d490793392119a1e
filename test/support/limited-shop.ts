/** Processes of one shop that share their stores, with the operations of the echo plugin under conditions of a test. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createSIWxPayload, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x'
import type { LocalAccount } from 'viem'
import { openSchema } from '../contracts/postgres.ts'
import { buy, type Offer, offer, type RequestOptions } from './agent.ts'
import { openGateway, type TestGateway } from './gateway.ts'
import { REDIS_URL } from './services.ts'

const SHOP = resolve(import.meta.dirname, '../fixtures/shop/catalog')

export interface LimitedShop {
  readonly processes: readonly TestGateway[]
  readonly catalogDir: string
  readonly dataDir: string
  /** The settings with which another process opens the same stores. */
  readonly environment: Readonly<Record<string, string>>
  open(): Promise<TestGateway>
  /** The time by the clock of its processes. */
  now(): Date
  /** The address of a path at the first or the second process. */
  at(nth: number, path: string): string
  /** How many payments all processes have settled. */
  transfers(): number
  /** Buys a call of the first or the second process. */
  pay(nth: number, path: string, wallet: LocalAccount, options?: RequestOptions): Promise<Response>
  close(): Promise<void>
}

/** Where the processes of a shop keep what they share. */
export const SHARED_STORES = ['files', 'PostgreSQL and Redis'] as const

/**
 * Opens two processes. `operations` has fields to add to operations of the echo product. Null if a server of the stores
 * does not answer.
 */
export async function openLimitedShop(
  stores: (typeof SHARED_STORES)[number],
  operations: Readonly<Record<string, object>>,
): Promise<LimitedShop | null> {
  const schema = stores === 'files' ? null : await openSchema()
  if (stores !== 'files' && schema === null) return null
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-limited-'))
  const catalogDir = join(folder, 'catalog')
  cpSync(SHOP, catalogDir, { recursive: true })
  const file = join(catalogDir, 'echo.json')
  const product = JSON.parse(readFileSync(file, 'utf8')) as { operations: Record<string, object> }
  for (const [id, fields] of Object.entries(operations)) Object.assign(product.operations[id] as object, fields)
  writeFileSync(file, JSON.stringify(product))
  const dataDir = join(folder, 'data')
  const environment = {
    CATALOG_DIR: catalogDir,
    DATA_DIR: dataDir,
    BASE_URL: `https://${folder.slice(-6).toLowerCase()}.shop.test`,
    TRUSTED_PROXIES: '127.0.0.1',
    ...(schema ? { DATABASE_URL: schema.url, KEYV_URL: REDIS_URL } : {}),
  }
  const processes: TestGateway[] = []
  const toNoon = 86_400 * 1.5 - ((Date.now() / 1000) % 86_400)
  async function open(): Promise<TestGateway> {
    const opened = await openGateway(environment, { inMemory: false })
    // At noon, a test that counts the calls of a day does not meet midnight.
    opened.advance(toNoon)
    processes.push(opened)
    return opened
  }
  await open()
  await open()
  return {
    processes,
    catalogDir,
    dataDir,
    environment,
    open,
    at: (nth, path) => `${(processes[nth % 2] as TestGateway).url}${path}`,
    transfers: () => processes.reduce((sum, { settler }) => sum + settler.transfers.length, 0),
    now: () => (processes[0] as TestGateway).now(),
    pay: (nth, path, wallet, options) =>
      buy(`${(processes[nth % 2] as TestGateway).url}${path}`, wallet, 2, options, (processes[0] as TestGateway).now()),
    async close() {
      for (const process of processes) await process.close()
      await schema?.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Signs in with a wallet: asks for a challenge, signs it, and returns the header. */
export async function signInHeader(
  url: string,
  wallet: LocalAccount,
  options: RequestOptions = {},
): Promise<{ readonly 'sign-in-with-x': string }> {
  return signedChallenge(await offer(url, options), wallet)
}

/** Signs the challenge of a 402. */
export async function signedChallenge(
  { v2 }: Offer,
  wallet: LocalAccount,
): Promise<{ readonly 'sign-in-with-x': string }> {
  const { extensions } = v2 as unknown as {
    extensions: { 'sign-in-with-x': { info: { uri: string }; supportedChains: object[] } }
  }
  const { info, supportedChains } = extensions['sign-in-with-x']
  const signed = { ...info, ...supportedChains[0] } as unknown as Parameters<typeof createSIWxPayload>[0]
  return { 'sign-in-with-x': encodeSIWxHeader(await createSIWxPayload(signed, wallet, info.uri)) }
}
