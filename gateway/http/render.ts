/** Renders Pug views to HTML. Views have texts and loops; handlers and `format` prepare the values. */
import type { Catalog } from '../plugin/catalog.ts'
import type { Views } from '../products/views.ts'
import { draw, waterfall } from './draw-chart.ts'
import { format } from './view-formats.ts'

export type Render = (view: string, locals: Readonly<Record<string, unknown>>) => string

/**
 * Creates a function that renders the views of the current edition by name, and throws if there is no such view. Every view
 * also gets `format`, `chart`, `navigation` and `links`.
 */
export function createRenderer(views: () => Views): Render {
  return (view, locals) => {
    const catalog = locals['catalog'] as Catalog | undefined
    const pages = { navigation: catalog ? navigation(catalog) : [], links: catalog ? links(catalog) : [] }
    return views().template(view)({ ...pages, ...locals, format, chart: { draw, waterfall } })
  }
}

export interface NavigationItem {
  readonly href: string
  readonly label: string
}

/** Returns the pages for the menu: listed views with a path of one segment. "/terms-of-use" gets the label "Terms of use". */
export function navigation(catalog: Catalog): readonly NavigationItem[] {
  return [...catalog.operations.values()]
    .filter(({ view, method, listed, path }) => view !== null && method === 'GET' && listed && /^\/[a-z-]+$/.test(path))
    .map(({ path }) => ({ href: path, label: path.charAt(1).toUpperCase() + path.slice(2).replaceAll('-', ' ') }))
}

const RECEIPTS: NavigationItem = { href: '/receipt', label: 'Check a receipt' }

/** Returns the links for the foot of a page: those of service.json, if a route serves them, and the check of receipts. */
function links({ service, operations }: Catalog): readonly NavigationItem[] {
  const routes = [...operations.values()].filter(({ method, view }) => method === 'GET' && view !== null)
  const isServed = (href: string): boolean =>
    routes.some(({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`).test(href))
  const own = (service.links ?? []).filter(({ href }) => !href.startsWith('/') || isServed(href))
  return isServed(RECEIPTS.href) ? [...own, RECEIPTS] : own
}
