/** The measured record as charts. */
import type { Chart } from '../lib/charts.ts'
import type { Curves } from './curves.ts'

export interface Recorded {
  readonly recording: string
  readonly first: string
  readonly last: string
  readonly interval_minutes: number
  readonly curves: Curves
}

const TONES = ['main', 'second', 'third'] as const
const toneOf = (index: number) => TONES[index] ?? ('muted' as const)
const LEAST_DAYS = 300
/** A bin with less of all snapshots says little. */
const LEAST_SHARE = 0.005

/** Calibration and persistence of recordings finer than an hour that last most of a year, three at the most. */
export function pictures(results: readonly Recorded[]): Chart[] {
  const long = results
    .filter(({ first, last }) => Date.parse(last) - Date.parse(first) >= LEAST_DAYS * 86_400_000)
    .filter(({ interval_minutes: minutes }) => minutes < 60)
    .slice(0, TONES.length)
  return long.length === 0 ? [] : [calibration(long), persistence(long)]
}

function calibration(results: readonly Recorded[]): Chart {
  return {
    id: 'regime-calibration',
    title: 'Calibration: confidence stated, and how often it was right',
    description:
      'For each recording a line from low to high confidence; the nearer it runs to the dashed diagonal, the truer the confidence was.',
    x: { label: 'Confidence stated', unit: 'percent', domain: [0.5, 1] },
    y: { label: 'Labels that the next hour bore out', unit: 'percent', domain: [0.5, 1] },
    series: [
      {
        name: 'As stated',
        tone: 'muted',
        kind: 'dashed',
        points: [
          [0.5, 0.5],
          [1, 1],
        ],
      },
      ...results.map(({ recording, curves }, index) => ({
        name: recording,
        tone: toneOf(index),
        points: curves.calibration
          .filter(([, , share]) => share >= LEAST_SHARE)
          .map(([stated, right]) => [stated, right] as const),
      })),
    ],
    table: {
      columns: ['Recording', 'Confidence stated', 'Right', 'Of all snapshots'],
      rows: results.flatMap(({ recording, curves }) =>
        curves.calibration.map(([stated, right, share]) => [
          recording,
          percent(stated),
          percent(right),
          percent(share),
        ]),
      ),
    },
  }
}

function persistence(results: readonly Recorded[]): Chart {
  return {
    id: 'regime-persistence',
    title: 'Persistence: VOLATILE labels that are still VOLATILE',
    description: 'For each recording a line that falls with the hours since a VOLATILE label was given.',
    x: { label: 'Hours later', domain: [0, 24] },
    y: { label: 'Still VOLATILE', unit: 'percent', domain: [0, 1] },
    series: results.map(({ recording, curves }, index) => ({
      name: recording,
      tone: toneOf(index),
      points: [[0, 1] as const, ...curves.persistence.map(([hours, , volatile]) => [hours, volatile] as const)],
    })),
    table: {
      columns: ['Recording', 'Hours later', 'Same label', 'Still VOLATILE'],
      rows: results.flatMap(({ recording, curves }) =>
        curves.persistence.map(([hours, all, volatile]) => [recording, hours, percent(all), percent(volatile)]),
      ),
    },
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`
