/** The plugins that come with the gateway. */
import type { Parts } from './parts.ts'
import { type Recipients, recipientsOf } from '../config/pay-to.ts'
import type { Warning } from '../documents/document.ts'
import { createDocumentsPlugin } from '../documents/documents-plugin.ts'
import { createPagesPlugin } from '../documents/pages/pages-plugin.ts'
import { walletTerms } from '../documents/pages/wallet-terms.ts'
import { createPlansPlugin } from '../documents/plans/plans-plugin.ts'
import { createReissue } from '../documents/plans/reissue.ts'
import { createReceiptsPlugin } from '../documents/receipts/receipts-plugin.ts'
import { denyListHook } from '../hooks/deny-list.ts'
import type { Settler } from '../methods/payment-method.ts'
import type { MessageChecks, WalletSignIn } from '../payments/wallet-sign-in.ts'
import type { Plugin } from '../plugin/plugin.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

interface PluginOptions {
  readonly recipients: Recipients
  /** The local chain; null on real networks. */
  readonly sandbox: Pick<Sandbox, 'rpcUrl'> | null
  /** Settings that the operator should look at. */
  readonly warnings: () => readonly Warning[]
  readonly messages: MessageChecks
  readonly signIn: WalletSignIn
  readonly settlerHealth: Settler['health']
}

/** The plugins that come with the gateway: documents, pages, plans and receipts, and the hook with the deny list. */
export const BUILTINS: ReadonlySet<string> = new Set(['documents', 'pages', 'plans', 'receipts', denyListHook.name])

/** Creates the plugins of these names. */
export function builtInPlugins(
  { config, editions, stores, tokens, clock }: Pick<Parts, 'config' | 'editions' | 'stores' | 'tokens' | 'clock'>,
  { recipients, sandbox, warnings, messages, signIn, settlerHealth }: PluginOptions,
): readonly Plugin[] {
  const { baseUrl, dataMode } = config
  const { journal, prices, revocations } = stores
  const documents = createDocumentsPlugin({
    baseUrl,
    network: recipients.network,
    payTo: recipients.payTo,
    others: recipients.others ?? [],
    now: clock.wall,
    editions: () => editions.current,
    issues: () => editions.issues,
    prices,
    jwks: () => tokens.jwks(),
    started: clock.wall(),
    dataMode,
    warnings,
    journalHealth: journal.health,
    settlerHealth,
  })
  const reissue = createReissue({
    journal,
    tokens,
    baseUrl,
    revoked: revocations.ids,
    ...messages,
    now: clock.wall,
  })
  const networks = recipientsOf(recipients).map(({ network }) => network)
  return [
    documents,
    createPagesPlugin(recipients, walletTerms(recipients, sandbox?.rpcUrl ?? null)),
    createPlansPlugin({ tokens, baseUrl, reissue }),
    createReceiptsPlugin({ tokens, networks, journal, signIn, now: clock.wall }),
  ]
}
