/** What the page of an operation draws of an answer beside its JSON: the chart of the catalog, rows and links to pages. */
import { columnsOf, type Row, rowsOf, tableOf } from '../../catalog/table.ts'
import {
  type Call,
  type Catalog,
  type Chart,
  NotFound,
  type Operation,
  type WaterfallStep,
} from '../../plugin/plugin.ts'
import { isObject } from '../../validation/json.ts'

/** Rows that the page shows. The JSON beside them has all. */
const MAX_ROWS = 20
const MAX_COLUMNS = 8
const MAX_CELL = 60
const TONES = ['main', 'second', 'third', 'muted'] as const

/** Returns what to draw of the answer in the body. Throws NotFound if there is no such operation. */
export function drawAnswer({ catalog, input }: Call) {
  const operation = catalog.operations.get(input.params['operation'] as string)
  if (!operation || operation.internal) throw new NotFound('This operation does not exist. /docs lists all operations.')
  const answer = input.body
  return {
    chart: lineChart(operation, answer, catalog),
    parts: partsOf(operation, answer),
    unit: operation.chart?.unit ?? 'number',
    title: operation.chart?.title ?? '',
    table: tableOfAnswer(operation, answer, catalog),
    pages: pagesIn(answer, catalog),
  }
}

/** The chart of rows over time; null if the catalog names none or there are too few points. */
function lineChart(operation: Operation, answer: unknown, catalog: Catalog): Chart | null {
  const { id, chart } = operation
  const table = tableOf(operation, catalog)
  if (table === null || chart?.y === undefined) return null
  const all = rowsOf(answer, table)
  const time = chart.x ?? table.columns.find(({ kind }) => kind === 'time')?.name ?? ''
  const series = chart.y.map((name, index) => ({
    name: labelOf(name, chart.unit),
    tone: TONES[index] ?? 'muted',
    points: all.flatMap((row) => pointOf(row, time, name)).sort(([one], [other]) => one - other),
  }))
  if (series.some(({ points }) => points.length < 2)) return null
  return {
    id: `chart-${id}`,
    title: chart.title,
    description: `${chart.title}: ${all.length} rows over time. The table below the chart has the same figures.`,
    x: { label: 'Time, UTC', scale: 'time' },
    y: { label: chart.unit === undefined ? '' : chart.unit, unit: chart.unit ?? 'number' },
    series,
  }
}

function pointOf(row: Row, time: string, name: string): readonly (readonly [number, number])[] {
  const [at, value] = [Date.parse(String(row[time])), row[name]]
  return typeof value === 'number' && !Number.isNaN(at) ? [[at, value]] : []
}

/** The parts of a sum, with their sum; null if the catalog names none. */
function partsOf({ chart }: Operation, answer: unknown): readonly WaterfallStep[] | null {
  if (chart?.parts === undefined || !isObject(answer)) return null
  const parts = answer[chart.parts]
  if (!isObject(parts)) return null
  const steps = Object.entries(parts).flatMap(([name, amount]) =>
    typeof amount === 'number' ? [{ label: labelOf(name, chart.unit), amount }] : [],
  )
  if (steps.length === 0) return null
  return [...steps, { label: 'total', amount: steps.reduce((sum, { amount }) => sum + amount, 0), total: true }]
}

/** The name of a figure, without the unit that the figure is shown with. */
function labelOf(name: string, unit = ''): string {
  return name.replace(new RegExp(`_${unit}$`), '').replaceAll('_', ' ')
}

function tableOfAnswer(operation: Operation, answer: unknown, catalog: Catalog) {
  const table = tableOf(operation, catalog)
  const rows = table ? rowsOf(answer, table) : []
  if (!table || rows.length === 0) return null
  const columns = columnsOf(table, rows)
    .filter(({ kind }) => kind !== 'json')
    .slice(0, MAX_COLUMNS)
  if (columns.length === 0) return null
  return {
    columns: columns.map(({ name, kind }) => ({ name, isNumber: kind === 'integer' || kind === 'number' })),
    rows: rows.slice(0, MAX_ROWS).map((row) => columns.map(({ name }) => cellOf(row[name]))),
    count: rows.length,
  }
}

function cellOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null).replace(/^null$/, '–')
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text
}

/** Paths in the answer that are pages of this service. */
function pagesIn(answer: unknown, { operations }: Catalog): readonly string[] {
  if (!isObject(answer)) return []
  const pages = [...operations.values()].filter(({ method, view }) => method === 'GET' && view !== null)
  const isPage = (path: string): boolean =>
    pages.some((page) => new RegExp(`^${page.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
  return Object.entries(answer).flatMap(([name, value]) =>
    name.endsWith('url') && typeof value === 'string' && isPage(value) ? [value] : [],
  )
}
