/**
 * What the compiler must refuse of a list that has to name every member of a type. plugin.test.ts compiles this file: a line
 * below `@ts-expect-error` that compiles is an error.
 */
import type { ListedVenue } from '../../plugins/market/venues/bar-venues.ts'
import { VENUES as BAR_VENUES } from '../../plugins/market/venues/bar-venues.ts'
import { VENUES as FUNDING_VENUES } from '../../plugins/funding/venues/funding-venues.ts'

/** A venue without a bit would be stored as no venue at all. */
type WithoutBit = Omit<ListedVenue, 'bit'>
declare const venue: WithoutBit
// @ts-expect-error it has no bit
void (venue satisfies ListedVenue)

const { kraken: _bars, ...fewerBarVenues } = BAR_VENUES
// @ts-expect-error a venue is missing
void (fewerBarVenues satisfies typeof BAR_VENUES)

const { okx: _rates, ...fewerFundingVenues } = FUNDING_VENUES
// @ts-expect-error a venue is missing
void (fewerFundingVenues satisfies typeof FUNDING_VENUES)
