/** The built-in plugin of the pages that every shop has: start page, prices, documentation. */
import { definePlugin, type Plugin } from '../../plugin/plugin.ts'
import { drawAnswer } from './answer-drawing.ts'
import type { Recipients } from '../../config/pay-to.ts'
import { createDocs } from './docs.ts'
import { homePage } from './home-page.ts'
import { pricing } from './pricing-page.ts'
import type { WalletTerms } from './wallet-terms.ts'

/** Creates the plugin "pages". Each handler returns the values that its view shows. */
export function createPagesPlugin(recipients: Recipients, wallet: WalletTerms): Plugin {
  const { docs, docsOf } = createDocs(recipients, wallet)
  return definePlugin({
    name: 'pages',
    setup: () => ({
      handlers: {
        getHome: homePage,
        getFrontPage: homePage,
        getPricingPage: (call) => pricing(call, wallet),
        getDocs: docs,
        getDocsOperation: docsOf,
        drawAnswer,
      },
    }),
  })
}
