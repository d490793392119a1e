/** Starts the service with the catalog and history that scene.ts writes. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway } from '../../gateway/compose.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { untilReady, writeScene } from './scene.ts'

/** The start page shows 30 days, delayed by one day. */
const DAYS = 33

export interface OpenScene {
  readonly url: string
  readonly buyer: Hex
  /** Gives access to the operator console. */
  readonly operatorToken: string
  close(): Promise<void>
}

/** Starts the service in its own sandbox, with all data in `folder`. Throws if the service has no sandbox. */
export async function openScene(folder: string): Promise<OpenScene> {
  const operatorToken = randomBytes(24).toString('hex')
  const place = { PORT: String(await freePort()), DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'silent' }
  const environment = { ...place, ...writeScene(folder, DAYS), OPERATOR_TOKEN: operatorToken }
  const gateway = await createGateway(readConfig(environment))
  const url = await gateway.listen()
  await untilReady(url)
  const buyer = gateway.settlement.sandbox?.buyer.privateKey
  if (buyer === undefined) throw new Error('The service does not run in a sandbox.')
  return { url, buyer, operatorToken, close: () => gateway.close() }
}
