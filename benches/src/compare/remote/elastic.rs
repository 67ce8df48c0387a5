//! Elasticsearch and OpenSearch: one index of one shard, `@timestamp` and `message`, loaded by `_bulk`.

use super::http::{Place, Server};
use super::{load, push_text};
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result, bail};
use haystore_server::answer::json::push_timestamp;
use serde_json::{Value, json};

const BODY_BYTES: usize = 4_000_000;
/// Most lines that a search gives.
const FOUND_LINES: usize = 10_000;
/// Lines of a page of a full read.
const PAGE_LINES: usize = 5000;

/// A server of either kind.
#[derive(Debug)]
pub struct Elastic {
    task: Task,
    server: Server,
    name: &'static str,
}

impl Elastic {
    /// Nothing loaded yet.
    pub fn new(task: &Task, server: Server, name: &'static str) -> Self {
        Elastic { task: task.clone(), server, name }
    }

    fn path(&self, rest: &str) -> String {
        format!("/haystore-compare-{}{rest}", self.task.run)
    }

    fn bulk(&self, body: &[u8]) -> Result<()> {
        let answer = self.server.post(self.path("/_bulk").as_str(), "application/x-ndjson", body)?;
        let answer: Value = serde_json::from_str(&answer).context("the answer is no JSON")?;
        if answer["errors"] != json!(false) {
            let items = answer["items"].as_array().into_iter().flatten();
            let first = items.map(|item| &item["create"]["error"]).find(|error| !error.is_null());
            bail!("lines were refused: {}", first.unwrap_or(&answer["errors"]));
        }
        Ok(())
    }
}

/// Hands the lines of a search's answer to `take`; how many.
fn hits(answer: &Value, take: Take<'_>) -> Result<usize> {
    let hits = answer["hits"]["hits"].as_array().context("the answer holds no hits")?;
    for hit in hits {
        take(hit["_source"]["message"].as_str().context("a hit without its line")?.as_bytes())?;
    }
    Ok(hits.len())
}

impl Peer for Elastic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keeps(&self) -> Keeps {
        let how = "one shard, no replica, message as text, default codec, flushed, not force-merged; asked with match_phrase";
        Keeps { bytes: Bytes::Utf8, order: Order::None, substring: Way::No, token: Way::Index, fields: "time", how }
    }

    fn is_here(&self) -> bool {
        false
    }

    fn ingest(&mut self) -> Result<()> {
        let fields = json!({"@timestamp": {"type": "date_nanos"}, "message": {"type": "text"}});
        let settings = json!({"number_of_shards": 1, "number_of_replicas": 0});
        let index = json!({"settings": settings, "mappings": {"properties": fields}});
        self.server.json("PUT", self.path("").as_str(), &index)?;
        let render = |out: &mut Vec<u8>, time: i64, line: &[u8]| {
            out.extend_from_slice(b"{\"create\":{}}\n{\"@timestamp\":\"");
            push_timestamp(out, time);
            out.extend_from_slice(b"\",\"message\":");
            push_text(out, line);
            out.extend_from_slice(b"}\n");
        };
        load(&self.task, BODY_BYTES, &render, &mut |body| self.bulk(body))?;
        self.server.post(self.path("/_refresh").as_str(), "application/json", b"")?;
        self.server.post(self.path("/_flush").as_str(), "application/json", b"")?;
        Ok(())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        let stats = self.server.get_json(self.path("/_stats/store").as_str())?;
        Ok(stats["_all"]["primaries"]["store"]["size_in_bytes"].as_u64())
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let query = json!({"size": FOUND_LINES, "query": {"match_phrase": {"message": needle.text}}});
        hits(&self.server.json("POST", self.path("/_search").as_str(), &query)?, take).map(|_| ())
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        let path = self.path("/_search");
        let place = Place { path: &path, query: &[("scroll", "5m")] };
        let mut answer = self.server.json("POST", place, &json!({"size": PAGE_LINES, "sort": ["_doc"]}))?;
        while hits(&answer, take)? > 0 {
            let next = json!({"scroll": "5m", "scroll_id": answer["_scroll_id"]});
            answer = self.server.json("POST", "/_search/scroll", &next)?;
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<()> {
        self.server.delete(&self.path(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Sort;
    use crate::remote::fake::{Fake, LINES, both, task};

    #[test]
    fn an_index_is_made_filled_asked_and_removed() {
        let (_folder, task) = task(LINES);
        let fake = Fake::new(|asked| {
            let hit = json!({"_scroll_id": "s", "hits": {"hits": [{"_source": {"message": "first"}}]}});
            let answer = match asked.line.split_once(' ').unwrap().1 {
                "/haystore-compare-7/_bulk" => json!({"errors": false}),
                "/haystore-compare-7/_stats/store" => json!({"_all": {"primaries": {"store": {"size_in_bytes": 1234}}}}),
                "/haystore-compare-7/_search" | "/haystore-compare-7/_search?scroll=5m" => hit,
                "/_search/scroll" => json!({"_scroll_id": "s", "hits": {"hits": []}}),
                _ => json!({"acknowledged": true}),
            };
            (200, answer.to_string().into_bytes())
        });
        let mut elastic = Elastic::new(&task, Server::new(&fake.url).unwrap(), "elasticsearch");
        elastic.ingest().unwrap();
        assert_eq!(elastic.stored_bytes().unwrap(), Some(1234));
        assert_eq!(both(&mut elastic, "abc123def", Sort::Token), (vec!["first".into()], vec!["first".into()]));
        elastic.remove().unwrap();

        let asked = fake.requests();
        let lines: Vec<&str> = asked.iter().map(|a| a.line.as_str()).collect();
        let index = "/haystore-compare-7";
        let expected = [
            format!("PUT {index}"),
            format!("POST {index}/_bulk"),
            format!("POST {index}/_refresh"),
            format!("POST {index}/_flush"),
            format!("GET {index}/_stats/store"),
            format!("POST {index}/_search"),
            format!("POST {index}/_search?scroll=5m"),
            "POST /_search/scroll".into(),
            format!("DELETE {index}"),
        ];
        assert_eq!(lines, expected);
        let body = asked[1].text();
        let rows: Vec<Value> = body.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(rows[0], json!({"create": {}}));
        assert_eq!(rows[3], json!({"@timestamp": "2023-11-14T22:13:21.000000000Z", "message": LINES.lines().nth(1).unwrap()}));
        assert!(body.ends_with('\n'));
    }

    #[test]
    fn refused_lines_are_told() {
        let (_folder, task) = task(LINES);
        let fake = Fake::new(|_| (200, br#"{"errors":true,"items":[{"create":{}},{"create":{"error":{"type":"bad"}}}]}"#.to_vec()));
        let mut elastic = Elastic::new(&task, Server::new(&fake.url).unwrap(), "opensearch");
        assert_eq!(elastic.ingest().unwrap_err().to_string(), "lines were refused: {\"type\":\"bad\"}");
    }
}
