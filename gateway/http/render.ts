/** Renders Pug views to HTML. Views have texts and loops; handlers and `format` prepare the values. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { compileTemplate } from 'pug'
import type { Catalog } from '../plugin/catalog.ts'
import { draw, waterfall } from './draw-chart.ts'
import { format } from './view-formats.ts'

export type Render = (view: string, locals: Readonly<Record<string, unknown>>) => string

export interface RendererOptions {
  /** The gateway's own views, searched first. The layout is here. */
  readonly viewDir: string
  /** Folders of views that the plugins of the current edition bring along, searched next. */
  readonly pluginViewDirs?: () => readonly string[]
}

/** Pug is loaded with the first page: it takes a tenth of the gateway's start. */
const pug = (): typeof import('pug') => createRequire(import.meta.url)('pug') as typeof import('pug')

/** Compiles the view in a file. Paths in it that begin with a slash are below `basedir`. Throws if it has an error. */
export function compileView(file: string, basedir: string): compileTemplate {
  return pug().compileFile(file, { basedir, compileDebug: false })
}

const VIEW_NAME = /^[a-z0-9]+(?:[-/][a-z0-9]+)*$/

/**
 * Creates a function that renders views by name and throws if there is no such view. A view is looked up once
 * per edition, recognised by the `catalog` in `locals`, so a changed view appears with the next edition. Every view also
 * gets `format`, `chart`, `navigation` and `links`.
 */
export function createRenderer({ viewDir, pluginViewDirs = () => [] }: RendererOptions): Render {
  const compiled = new WeakMap<object, Map<string, compileTemplate>>()

  function compile(view: string): compileTemplate {
    const viewDirs = [viewDir, ...pluginViewDirs()]
    const files = VIEW_NAME.test(view) ? viewDirs.map((folder) => join(folder, `${view}.pug`)) : []
    const file = files.find((path) => existsSync(path))
    if (file === undefined) throw new Error(`There is no view "${view}" in ${viewDirs.join(', ')}.`)
    return compileView(file, viewDir)
  }

  return (view, locals) => {
    const catalog = locals['catalog'] as Catalog | undefined
    const edition = catalog ?? compiled
    const templates = compiled.get(edition) ?? new Map<string, compileTemplate>()
    compiled.set(edition, templates)
    const template = templates.get(view) ?? compile(view)
    templates.set(view, template)
    const pages = { navigation: catalog ? navigation(catalog) : [], links: catalog ? links(catalog) : [] }
    return template({ ...pages, ...locals, format, chart: { draw, waterfall } })
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
