/** The operator's view: funnel, alarms, reconciliation with the chain, and console. */
import type { Parts } from './parts.ts'
import { readableNetworks, type Settlement } from './settlement.ts'
import { statfs } from 'node:fs/promises'
import { createAlarms, type DiskParts } from '../accounting/alarms.ts'
import { createAlertSender, type SendAlert } from '../accounting/alert-webhook.ts'
import { openFunnel } from '../accounting/funnel.ts'
import { openPaymentWebhook, type PaymentWebhook } from '../accounting/payment-webhook.ts'
import { createWebhook } from '../accounting/webhook.ts'
import { openGasSpending } from '../accounting/gas-spent.ts'
import { createLedger } from '../accounting/ledger.ts'
import { createOperatorScreens } from '../accounting/operator-screens.ts'
import { createScreenData } from '../accounting/operator-screen-data.ts'
import { compareAll, comparisonOf } from '../accounting/reconciliation/comparison.ts'
import { type CostLimits, createCostComparison } from '../accounting/settlement-against-prices.ts'
import { openFindings } from '../accounting/reconciliation/findings.ts'
import { createReconciliation, type Reconciliation } from '../accounting/reconciliation/reconciliation.ts'
import type { Config } from '../config/config.ts'
import { NETWORKS } from '../config/networks.ts'
import { recipientsOf } from '../config/pay-to.ts'
import { readingNodes, SANDBOX } from '../config/settlement.ts'
import { planPurchases } from '../documents/plans/plan-purchases.ts'
import { createOperatorConsole, type OperatorConsole } from '../http/operator-console.ts'
import { OperatorSessions } from '../http/operator-session.ts'
import type { Render } from '../http/render.ts'
import type { PausedSales } from '../products/paused-sales.ts'
import type { GasAccount } from '../methods/payment-method.ts'
import type { Logger } from 'pino'

const COMPARE_SECONDS = 60
const WEBHOOK_SECONDS = 1

interface OperatorOptions {
  readonly render: Render
  readonly paused: PausedSales
  /** How often the newest blocks are looked at, and how often alarms are checked. */
  readonly lookSeconds: number
  readonly alarmSeconds: number
}

export interface Operator {
  /** Null if there is no token: without OPERATOR_TOKEN, only the sandbox has one. */
  readonly console: OperatorConsole | null
  start(): void
  stop(): Promise<void>
}

/** Wires the operator's view: the funnel, alarms, reconciliation with the chain, and the console. */
export async function openOperator(
  parts: Parts,
  { render, paused, lookSeconds, alarmSeconds }: OperatorOptions,
): Promise<Operator> {
  const { config, settlement, stores, editions, metrics, log, clock } = parts
  const now = clock.wall
  const { journal, db, lease, prices, revocations } = stores
  const { baseUrl, ownWallets: own } = config
  const operatorToken = config.operatorToken ?? settlement.sandbox?.operatorToken ?? null
  const settlerHealth = () => settlement.settler.health()
  const funnel = await openFunnel(db, log, now, metrics)
  const secrets = config.webhookSecrets
  const alert = createAlertSender({ url: config.alertWebhookUrl, service: baseUrl, secrets, log, now })
  const webhook = await openWebhook(parts)
  const reconciliation = await openReconciliation(parts, alert)
  const accounts = (): readonly GasAccount[] => settlement.settler.gasAccounts?.() ?? []
  const limits = costLimitsOf(config)
  warnOfUnknownCoins(settlement, limits, log)
  const gas = {
    accounts,
    belowCost: createCostComparison({
      accounts,
      operations: () => editions.current.catalog.operations.values(),
      limits,
      now,
    }),
    spending: await openGasSpending(db, now),
    lowSettlements: config.gasLowSettlements,
    perHour: config.gasAlarmPerHour,
  }
  metrics.watchGas(gas.accounts)
  const alarms = createAlarms({
    journal,
    ...(config.databaseUrl === null && config.diskLowBytes > 0 ? { disk: diskOf(config) } : {}),
    settlerHealth,
    gas,
    ...(reconciliation ? { foreignPayments: reconciliation.foreignSince } : {}),
    products: () => editions.current.status(),
    freshness: () => editions.current.freshness(),
    lease,
    alert,
    onChecked: metrics.alarmed,
    log,
    now,
  })
  metrics.onSettled(alarms.observe)
  const ledger = createLedger({ journal, own })
  const data = createScreenData({
    journal,
    ledger,
    funnel,
    metrics,
    prices,
    purchases: (catalog, limit) => planPurchases(journal, catalog, { limit }),
    revoked: revocations.ids,
    issues: () => editions.issues,
    reconciliation,
    alarms: alarms.raised,
    paused,
    settlerHealth,
    networks: recipientsOf(settlement).map(({ network }) => network),
    own,
    now,
  })
  const { screens, downloads, actions } = createOperatorScreens({
    data,
    ledger,
    revocations,
    paused,
    reconciliation,
    config,
    log,
    now,
  })
  const sessions = operatorToken === null ? null : new OperatorSessions(operatorToken, baseUrl, { now, revocations })
  return {
    console:
      sessions && createOperatorConsole({ sessions, screens, downloads, actions, metrics, render, baseUrl, log }),
    start() {
      funnel.start()
      reconciliation?.start(COMPARE_SECONDS, lookSeconds)
      alarms.start(alarmSeconds)
      webhook?.start(WEBHOOK_SECONDS)
    },
    async stop() {
      await reconciliation?.stop()
      await alarms.stop()
      await webhook?.stop()
      await funnel.stop()
    },
  }
}

/** The cost that prices are compared with. The sandbox has the settings of the leading network. */
function costLimitsOf({ networks, gasCoinPrice, gasMaxPercent: maxPercent }: Config): CostLimits {
  const coinPrices = new Map(networks.map(({ network, gasCoinPrice: price }) => [network, price]))
  if (networks.some(({ network }) => network === SANDBOX)) coinPrices.set(NETWORKS['base-sepolia'].name, gasCoinPrice)
  return { coinPrices, maxPercent }
}

/** Gas is paid for with coins whose price no chain knows, and a wrong guess would accuse or excuse every price. */
function warnOfUnknownCoins({ settler }: Settlement, { coinPrices }: CostLimits, log: Logger): void {
  for (const { network } of settler.gasAccounts?.() ?? [])
    if (!network.isTest && (coinPrices.get(network.name) ?? null) === null)
      log.warn(
        { network: network.name },
        'what settlements cost is not compared with prices: GAS_COIN_USD does not say what the coin that pays for gas is worth',
      )
}

/** The disk that the journal is on. */
function diskOf({ dataDir, diskLowBytes }: Config): DiskParts {
  return {
    async free() {
      const { bavail, bsize } = await statfs(dataDir)
      return bavail * bsize
    },
    low: diskLowBytes,
    folder: dataDir,
  }
}

/** Opens the webhook of payments. Null if no address is configured. */
async function openWebhook({ config, stores, clock, log }: Parts): Promise<PaymentWebhook | null> {
  const { paymentWebhookUrl: url, webhookSecrets: secrets, baseUrl: service, ownWallets: own } = config
  if (url === null) return null
  const deliver = createWebhook({ url, secrets, now: clock.wall })
  return openPaymentWebhook({ ...stores, deliver, service, own, log, now: clock.wall })
}

/** Opens the comparison with the chain. Null if no network has a node to read it from. */
async function openReconciliation(parts: Parts, alert: SendAlert): Promise<Reconciliation | null> {
  const { config, settlement, stores, metrics, log, clock } = parts
  const { journal, db, lease } = stores
  const isLocal = settlement.sandbox !== null
  const readable = readableNetworks(settlement, config)
  const compared = recipientsOf(settlement).flatMap((recipient, at) => {
    const rpcUrl = readingNodes(
      readable[at]?.addresses ?? null,
      isLocal ? null : (config.networks[at]?.settleRpcUrl ?? null),
    )
    return rpcUrl === null ? [] : [{ ...recipient, rpcUrl, isLocal, twoNodesFrom: config.twoNodesFrom }]
  })
  if (compared.length === 0) return null
  const findings = await openFindings(db)
  const shared = { own: config.ownWallets, journal, findings, alert, log, now: clock.wall }
  const compare = compareAll(compared.map((each) => comparisonOf({ ...each, ...shared })))
  return createReconciliation({
    compare,
    findings,
    lease,
    onCompared: (comparison) => metrics.reconciled(comparison?.buckets ?? {}),
    log,
  })
}
