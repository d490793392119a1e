/** Renders Pug views to HTML. Views have texts and loops; handlers and `format` prepare the values. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { compileTemplate } from 'pug'
import type { Catalog } from '../plugin/catalog.ts'
import { draw, waterfall } from './draw-chart.ts'
import { templateOf } from './known-templates.ts'
import { format } from './view-formats.ts'

export type Render = (view: string, locals: Readonly<Record<string, unknown>>) => string

export interface RendererOptions {
  /** The gateway's own views, searched first. The layout is here. */
  readonly viewDir: string
  /** Folders of views that the plugins of the current edition bring along, searched next. */
  readonly pluginViewDirs?: () => readonly string[]
}

const VIEW_NAME = /^[a-z0-9]+(?:[-/][a-z0-9]+)*$/

/**
 * Creates a function that renders views by name and throws if there is no such view. A view is looked up once
 * per edition, recognised by the `catalog` in `locals`, so a changed view appears with the next edition. Every view also
 * gets `format`, `chart` and `navigation`.
 */
export function createRenderer({ viewDir, pluginViewDirs = () => [] }: RendererOptions): Render {
  const compiled = new WeakMap<object, Map<string, compileTemplate>>()

  function compile(view: string): compileTemplate {
    const viewDirs = [viewDir, ...pluginViewDirs()]
    const files = VIEW_NAME.test(view) ? viewDirs.map((folder) => join(folder, `${view}.pug`)) : []
    const file = files.find((path) => existsSync(path))
    if (file === undefined) throw new Error(`There is no view "${view}" in ${viewDirs.join(', ')}.`)
    return templateOf(file, viewDir)
  }

  return (view, locals) => {
    const catalog = locals['catalog'] as Catalog | undefined
    const edition = catalog ?? compiled
    const templates = compiled.get(edition) ?? new Map<string, compileTemplate>()
    compiled.set(edition, templates)
    const template = templates.get(view) ?? compile(view)
    templates.set(view, template)
    return template({ navigation: catalog ? navigation(catalog) : [], ...locals, format, chart: { draw, waterfall } })
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
