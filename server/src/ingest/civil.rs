//! Civil dates of the proleptic Gregorian calendar as nanoseconds since the Unix epoch.
//!
//! Pure arithmetic; what does not fit an i64 of nanoseconds (years 1677 to 2262 do) is `None`.
//! This module must not know text.

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// Seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;

const DAYS_BEFORE_MONTH: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_OF_MONTH: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A calendar day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

/// A time of day. `24:00:00` is the end of the day; second 60 (a leap second) is the first of the next minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
}

impl Date {
    /// Days since 1970-01-01; `None` when there is no such day.
    pub fn days(self) -> Option<i64> {
        let month = (self.month as usize).checked_sub(1)?;
        let leap = is_leap(self.year);
        let last = u32::from(*DAYS_OF_MONTH.get(month)?) + u32::from(leap && month == 1);
        if self.day == 0 || self.day > last {
            return None;
        }
        let year = i64::from(self.year);
        let before = 365 * (year - 1970) + leap_days_until(year - 1) - leap_days_until(1969);
        Some(before + i64::from(DAYS_BEFORE_MONTH[month]) + i64::from(leap && month > 1) + i64::from(self.day) - 1)
    }
}

impl Time {
    /// Whether a clock shows this.
    pub fn is_valid(self) -> bool {
        (self.hour < 24 && self.minute < 60 && self.second <= 60)
            || (self.hour == 24 && self.minute == 0 && self.second == 0 && self.nanos == 0)
    }

    fn seconds(self) -> i64 {
        i64::from(self.hour * 3600 + self.minute * 60 + self.second)
    }
}

/// Nanoseconds since the epoch of `date` `time` on a clock `zone_seconds` ahead of UTC.
pub fn instant(date: Date, time: Time, zone_seconds: i32) -> Option<i64> {
    if !time.is_valid() {
        return None;
    }
    let seconds = date.days()? * DAY_SECONDS + time.seconds() - i64::from(zone_seconds);
    i64::try_from(i128::from(seconds) * NANOS_PER_SECOND + i128::from(time.nanos)).ok()
}

/// The year in which `nanos` falls, UTC.
pub fn year_of(nanos: i64) -> i32 {
    let days = nanos.div_euclid(DAY_SECONDS * 1_000_000_000);
    // Years of 365 days are less than a year off in three centuries.
    let mut year = 1971 + days.div_euclid(365) as i32;
    while (Date { year, month: 1, day: 1 }).days().is_some_and(|first| first > days) {
        year -= 1;
    }
    year
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn leap_days_until(year: i64) -> i64 {
    year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let mut expected = Date { year: 1600, month: 1, day: 1 }.days().unwrap();
        for year in 1600..2400 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(days) = (Date { year, month, day }).days() {
                        assert_eq!(days, expected, "{year}-{month}-{day}");
                        expected += 1;
                    }
                }
            }
        }
        assert_eq!(Date { year: 1970, month: 1, day: 1 }.days(), Some(0));
        assert_eq!(Date { year: 2000, month: 3, day: 1 }.days(), Some(11_017));
        assert_eq!(Date { year: 2001, month: 2, day: 29 }.days(), None);
        assert_eq!(Date { year: 2000, month: 13, day: 1 }.days(), None);
        assert_eq!(Date { year: 2000, month: 0, day: 1 }.days(), None);
    }

    #[test]
    fn years_are_found_at_their_borders() {
        for year in 1678..2262 {
            let first = instant(Date { year, month: 1, day: 1 }, Time::default(), 0).unwrap();
            assert_eq!(year_of(first), year);
            assert_eq!(year_of(first - 1), year - 1);
        }
        assert_eq!((year_of(i64::MIN), year_of(i64::MAX)), (1677, 2262));
    }

    #[test]
    fn the_ends_of_an_i64_are_exact() {
        let date = Date { year: 1677, month: 9, day: 21 };
        let time = Time { hour: 0, minute: 12, second: 43, nanos: 145_224_192 };
        assert_eq!(instant(date, time, 0), Some(i64::MIN));
        assert_eq!(instant(date, Time { nanos: 145_224_191, ..time }, 0), None);
        let date = Date { year: 2262, month: 4, day: 11 };
        let time = Time { hour: 23, minute: 47, second: 16, nanos: 854_775_807 };
        assert_eq!(instant(date, time, 0), Some(i64::MAX));
        assert_eq!(instant(date, Time { nanos: 854_775_808, ..time }, 0), None);
    }
}
