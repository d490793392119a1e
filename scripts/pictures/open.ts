/** The scene as a running service. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway } from '../../gateway/compose.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { hasPast, layScene } from './scene.ts'

/** Enough for the thirty days of the start page, a day late. */
const DAYS = 33

export interface OpenScene {
  readonly url: string
  readonly buyer: Hex
  /** Opens the operator's console. */
  readonly operatorToken: string
  close(): Promise<void>
}

/** Opens the service in a sandbox of its own, everything it keeps in `folder`. */
export async function openScene(folder: string): Promise<OpenScene> {
  const operatorToken = randomBytes(24).toString('hex')
  const place = { PORT: String(await freePort()), DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'silent' }
  const environment = { ...place, ...layScene(folder, DAYS), OPERATOR_TOKEN: operatorToken }
  const gateway = await createGateway(readConfig(environment))
  const url = await gateway.listen()
  await hasPast(url)
  const buyer = gateway.settlement.sandbox?.buyer.privateKey
  if (buyer === undefined) throw new Error('the service is not in a sandbox')
  return { url, buyer, operatorToken, close: () => gateway.close() }
}
