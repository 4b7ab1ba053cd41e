#include "csrc/daemon/server/status_report.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "csrc/wire/codec.h"
#include "csrc/wire/coordinator_messages.h"
#include "csrc/wire/limits.h"

namespace gpushare::daemon {
namespace {

using nlohmann::json;

sched::JobRow make_row(std::uint64_t id) {
  sched::JobRow row;
  row.who.of.job = JobId{id};
  row.who.name = "gpt";
  row.who.command = std::string(150, 'c');
  row.who.pid = 100 + static_cast<std::int32_t>(id);
  row.state = "waiting";
  row.is_registered = true;
  row.room = mib(20);
  row.usage.resident = mib(1);
  row.waiting_since = seconds(90);
  return row;
}

StatusFacts make_facts(std::uint64_t num_jobs) {
  StatusFacts facts;
  facts.now = seconds(100);
  facts.started = seconds(40);
  facts.pid = 7;
  facts.socket = "/run/sock";
  facts.snapshot.epoch = 3;
  sched::DeviceRow device;
  device.device = "cpu";
  device.policy = "fair";
  device.capacity = gib(2);
  device.withheld = mib(600);
  device.free = gib(1);
  device.last_handover = micros(40);
  device.lanes.push_back({LaneId{0}, JobId{1}, JobId{2}, seconds(2), seconds(101)});
  device.lanes.back().pool = mib(64);
  for (std::uint64_t id = 1; id <= num_jobs; ++id) {
    device.jobs.push_back(make_row(id));
  }
  facts.snapshot.devices.push_back(device);
  return facts;
}

TEST(StatusReport, NamesEachNumberWithItsUnit) {
  StatusFacts facts = make_facts(2);
  facts.neighbours.found.push_back({4242, 1004, gib(1), "python x.py"});
  facts.decisions.push_back({seconds(99), "cpu", LaneId{0}, JobId{2}, "wait", "needs 3 MiB"});
  facts.explained[JobId{2}] = "waits for 1's boundary";
  facts.snapshot.devices[0].jobs[1].in_lane = LaneId{1};
  facts.snapshot.devices[0].jobs[1].iteration = millis(50);
  facts.snapshot.devices[0].jobs[1].long_iteration = millis(75);
  facts.snapshot.devices[0].jobs[1].iteration_source = sched::Source::kRemembered;
  PageFacts page;
  page.usage.iterations = 50;
  page.usage.busy = seconds(10);
  page.usage.resident = mib(5);
  page.usage.lane.mapped = mib(60);
  page.usage.lane.donated = mib(2);
  page.totals.spilled = mib(6);
  page.iterations_per_second = 2.5;
  facts.pages[JobId{2}] = page;
  facts.last_totals[JobId{1}] = {mib(1), mib(7), mib(8)};

  const json report = json::parse(status_text(facts));
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["coordinator"]["pid"], 7);
  EXPECT_EQ(report["coordinator"]["epoch"], 3);
  EXPECT_EQ(report["coordinator"]["socket"], "/run/sock");
  EXPECT_DOUBLE_EQ(report["coordinator"]["uptime_seconds"], 60.0);
  const json& device = report["devices"][0];
  EXPECT_EQ(device["capacity_bytes"], gib(2).value());
  EXPECT_EQ(device["withheld_bytes"], mib(600).value());
  EXPECT_EQ(device["free_bytes"], gib(1).value());
  EXPECT_DOUBLE_EQ(device["last_handover_seconds"], 40e-6);
  EXPECT_EQ(device["lanes"][0]["holder"], 1);
  EXPECT_EQ(device["lanes"][0]["pool_bytes"], mib(64).value());
  EXPECT_DOUBLE_EQ(device["lanes"][0]["quantum_left_seconds"], 1.0);
  const json& first = device["jobs"][0];
  EXPECT_EQ(first["resident_bytes"], mib(1).value());       // no page: as last seen
  EXPECT_EQ(first["dropped_total_bytes"], mib(1).value());  // as its last page said
  EXPECT_EQ(first["spilled_total_bytes"], mib(7).value());
  EXPECT_EQ(first["restored_total_bytes"], mib(8).value());
  EXPECT_EQ(first["explain"], "");
  const json& second = device["jobs"][1];
  EXPECT_EQ(second["job"], 2);
  EXPECT_DOUBLE_EQ(second["iteration_seconds"], 0.05);
  EXPECT_DOUBLE_EQ(second["long_iteration_seconds"], 0.075);
  EXPECT_EQ(second["iteration_source"], "remembered");
  EXPECT_EQ(first["iteration_source"], "unknown");
  EXPECT_EQ(second["lane_bytes"], mib(60).value());
  EXPECT_EQ(second["lane"], 1);
  EXPECT_EQ(second["donated_bytes"], mib(2).value());
  EXPECT_EQ(second["room_bytes"], mib(20).value());
  EXPECT_EQ(second["resident_bytes"], mib(5).value());
  EXPECT_EQ(second["spilled_total_bytes"], mib(6).value());
  EXPECT_EQ(second["iterations_per_second"], 2.5);
  EXPECT_EQ(second["iterations_per_busy_second"], 5.0);
  EXPECT_DOUBLE_EQ(second["waiting_seconds"], 10.0);
  EXPECT_EQ(second["explain"], "waits for 1's boundary");
  EXPECT_EQ(report["unmanaged"][0]["pid"], 4242);
  EXPECT_EQ(report["unmanaged"][0]["resident_bytes"], gib(1).value());
  EXPECT_DOUBLE_EQ(report["decisions"][0]["seconds_ago"], 1.0);
  EXPECT_EQ(report["decisions"][0]["reason"], "needs 3 MiB");
}

TEST(StatusReport, SaysWhatJobsNeedOnceItIsKnown) {
  StatusFacts facts = make_facts(3);
  sched::DeviceRow& device = facts.snapshot.devices[0];
  device.jobs[0].lane = mib(200);
  const auto seen = [](std::uint64_t iterations, Bytes live, Bytes need) {
    PageFacts page;
    page.usage.iterations = iterations;
    page.usage.live = live;
    page.usage.need = need;
    return page;
  };
  facts.pages[JobId{1}] = seen(3, mib(600), mib(900));
  facts.pages[JobId{1}].usage.outside = mib(10);
  facts.pages[JobId{2}] = seen(2, mib(700), mib(700));
  facts.pages[JobId{3}] = seen(9, mib(500), mib(1000));
  const auto parsed = [&] { return json::parse(status_text(facts))["devices"][0]; };
  EXPECT_EQ(parsed()["jobs"][0]["persistent_bytes"], mib(610).value());
  EXPECT_EQ(parsed()["jobs"][0]["ephemeral_bytes"], mib(490).value());
  EXPECT_TRUE(parsed()["jobs"][1]["persistent_bytes"].is_null());
  EXPECT_TRUE(parsed()["jobs"][1]["ephemeral_bytes"].is_null());
  const json expected = {{"fit", "one_ephemeral"},
                         {"persistent_bytes", mib(1110).value()},
                         {"ephemeral_bytes", mib(990).value()},
                         {"largest_ephemeral_bytes", mib(500).value()},
                         {"jobs_unknown", 1}};
  EXPECT_EQ(parsed()["admission"], expected);
  device.capacity = mib(2100);
  EXPECT_EQ(parsed()["admission"]["fit"], "all");
  device.capacity = mib(1609);
  EXPECT_EQ(parsed()["admission"]["fit"], "persistent_in_turns");
  device.jobs[2].is_registered = false;  // it runs no iterations any more
  EXPECT_EQ(parsed()["admission"]["largest_ephemeral_bytes"], mib(490).value());
}

TEST(StatusReport, EveryRowNamesItsDevice) {
  StatusFacts facts = make_facts(2);
  facts.neighbours.found.push_back({4242, 1004, gib(1), "python x.py"});
  facts.decisions.push_back({seconds(99), "cpu", LaneId{0}, JobId{2}, "wait", "needs 3 MiB"});
  facts.warnings = {"another coordinator"};
  facts.snapshot.devices[0].warnings = {"the host tier is full"};
  const json report = json::parse(status_text(facts));
  const json& device = report["devices"][0];
  std::vector<json> rows{device};
  for (const json& table : {device["lanes"], device["jobs"], report["unmanaged"],
                            report["decisions"], report["warnings"]}) {
    EXPECT_FALSE(table.empty());
    rows.insert(rows.end(), table.begin(), table.end());
  }
  EXPECT_EQ(rows.size(), 1U + 1 + 2 + 1 + 1 + 2);
  for (const json& row : rows) {
    EXPECT_EQ(row.value("device", ""), "cpu") << row;
  }
}

TEST(StatusReport, SaysWhatTheDeviceAndTheHostTierDo) {
  StatusFacts facts = make_facts(1);
  sched::DeviceRow& row = facts.snapshot.devices[0];
  row.busy = 0.97;
  row.host_used = {gib(4), gib(14)};
  row.host_budget = {gib(4), gib(60)};
  row.spill_dir = "/var/spill";
  row.switch_loss_allowed = 0.02;
  row.lanes[0].switch_loss = 0.07;
  row.jobs[0].waits_for_room = true;
  facts.neighbours.num_unreadable = 3;
  const json report = json::parse(status_text(facts));
  const json& device = report["devices"][0];
  EXPECT_EQ(device["busy"], 0.97);
  EXPECT_EQ(device["host_used_bytes"], gib(18).value());
  EXPECT_EQ(device["host_budget_bytes"], gib(64).value());
  EXPECT_EQ(device["host_file_used_bytes"], gib(14).value());
  EXPECT_EQ(device["host_file_budget_bytes"], gib(60).value());
  EXPECT_EQ(device["spill_dir"], "/var/spill");
  EXPECT_EQ(device["switch_loss_allowed"], 0.02);
  EXPECT_EQ(device["lanes"][0]["switch_loss"], 0.07);
  EXPECT_EQ(device["jobs"][0]["waits_for_room"], true);
  EXPECT_EQ(report["unmanaged_unreadable"], 3);
}

TEST(StatusReport, BytesThatAreNoTextDoNotBreakIt) {
  StatusFacts facts = make_facts(1);
  facts.snapshot.devices[0].jobs[0].who.name =
      "a\xff"
      "b\n\"";
  EXPECT_TRUE(json::accept(status_text(facts)));
}

TEST(StatusReport, OfManyJobsFitsIntoOneMessage) {
  StatusFacts facts = make_facts(400);
  for (int i = 0; i < 64; ++i) {
    facts.decisions.push_back({seconds(99), "cpu", LaneId{0}, JobId{2}, "wait", "because"});
  }
  const std::string text = bounded_status_text(facts);
  EXPECT_LE(wire::encode(wire::StatusReport{text}).size(), wire::kMaxMessageBytes);
  const json report = json::parse(text);
  const std::size_t shown = report["devices"][0]["jobs"].size();
  EXPECT_GT(shown, 20U);
  EXPECT_EQ(report["jobs_left_out"], 400 - shown);
  EXPECT_TRUE(report["decisions"].empty());
}

TEST(StatusReport, OldDecisionsGoFirst) {
  StatusFacts facts = make_facts(8);
  for (int i = 0; i < 64; ++i) {
    facts.decisions.push_back(
        {seconds(i), "cpu", LaneId{0}, JobId{2}, "wait", std::string(1000, 'r')});
  }
  const json report = json::parse(bounded_status_text(facts));
  ASSERT_FALSE(report["decisions"].empty());
  EXPECT_DOUBLE_EQ(report["decisions"].back()["seconds_ago"], 37.0);  // the newest
  EXPECT_EQ(report["devices"][0]["jobs"].size(), 8U);
  EXPECT_FALSE(report.contains("jobs_left_out"));
}

}  // namespace
}  // namespace gpushare::daemon
