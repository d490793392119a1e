/** The built-in plugin of the pages that every shop has: start page, prices, documentation. */
import { definePlugin, type Plugin } from '../../plugin/plugin.ts'
import { docs, docsOf } from './docs.ts'
import { homePage } from './home-page.ts'
import { pricing } from './pricing-page.ts'

/** Creates the plugin "pages". Each handler returns the values that its view shows. */
export function createPagesPlugin(): Plugin {
  return definePlugin({
    name: 'pages',
    setup: () => ({
      handlers: {
        getHome: homePage,
        getFrontPage: homePage,
        getPricingPage: pricing,
        getDocs: docs,
        getDocsOperation: docsOf,
      },
    }),
  })
}
